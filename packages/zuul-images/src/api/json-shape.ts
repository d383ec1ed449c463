/** Checks of parsed JSON: each gives the value with its type, or throws an Error that names the place. */

export function record(value: unknown, place: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(place, 'an object');
  return value as Record<string, unknown>;
}

export function list(value: unknown, place: string): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(place, 'a list');
  return value;
}

export function text(value: unknown, place: string): string {
  if (typeof value !== 'string') throw wrong(place, 'a string');
  return value;
}

/** Zuul writes null for what it does not know. */
export function optionalText(value: unknown, place: string): string | undefined {
  return value === undefined || value === null ? undefined : text(value, place);
}

function wrong(place: string, wanted: string): Error {
  return new Error(`${place} is not ${wanted}`);
}
