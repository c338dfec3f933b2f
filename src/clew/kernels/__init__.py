"""Every compiled loop, one file per operation.

Kernels fill arrays that the caller owns. They never raise, draw random numbers or see Python objects, and they
trust their input. Written in Cython's pure-Python mode: the same file runs interpreted and compiled.
"""
