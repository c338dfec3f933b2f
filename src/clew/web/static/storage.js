// The browser's local storage. It may be full, or closed to this page: reading then finds nothing, and writing says so.

export function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

// Whether the value is kept.
export function write(key, value) {
  try {
    localStorage.setItem(key, value);
    return true;
  } catch {
    return false;
  }
}

export function remove(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // Nothing could be written either.
  }
}

export function keys(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

// A text that no other browser, tab or answer has.
export const random = () => [...crypto.getRandomValues(new Uint32Array(4))].map((one) => one.toString(36)).join("");
