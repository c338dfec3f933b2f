def run(*, quick): raise SystemExit
