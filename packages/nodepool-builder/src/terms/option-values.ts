import { InvalidArgumentError } from 'commander';

/** Parser of options that are a count of at least 1. */
export const positiveInteger: (text: string) => number = integer(1, 'It must be a whole number above 0.');

/** Parser of options that may be 0. */
export const wholeNumber: (text: string) => number = integer(0, 'It must be a whole number.');

/** Parser of TCP ports; with 0, the system chooses one. */
export const portNumber: (text: string) => number = integer(0, 'It must be a port number.', 65_535);

function integer(minimum: number, message: string, maximum = Number.MAX_SAFE_INTEGER) {
  return (text: string): number => {
    const value = text.trim() === '' ? Number.NaN : Number(text);
    if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(message);
  };
}

/** Parser of options that may be repeated. */
export function append(value: string, values: readonly string[] = []): readonly string[] {
  return [...values, value];
}
