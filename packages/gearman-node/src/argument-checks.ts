import { types } from 'node:util';
import { GearmanError } from './errors.ts';

/** libgearman's limit. A name of 8 KiB makes gearmand disconnect the worker that grabs its job. */
export const MAX_FUNCTION_NAME_BYTES = 512;

/** gearmand's limit. It truncates a longer unique key without notice, or rejects it. */
const MAX_UNIQUE_BYTES = 63;

/** gearmand's limit. It disconnects a client that requests the status of a longer handle. */
const MAX_HANDLE_BYTES = 63;

/** Maximum delay of setTimeout in milliseconds, about 25 days. setTimeout treats a longer delay as 1 ms. */
export const MAX_TIMER_DELAY: number = 2 ** 31 - 1;

const MAX_PORT = 65_535;

/** Maximum number of characters of an invalid argument in an error message. */
const MAX_SHOWN = 80;

/** @throws GearmanError `invalid-argument` unless the name has 1 to 512 bytes and no NUL */
export function checkFunctionName(name: string): void {
  if (fits(name, MAX_FUNCTION_NAME_BYTES) && name !== '') return;
  refuse('function name', name, `give it 1 to ${MAX_FUNCTION_NAME_BYTES} bytes without a NUL`);
}

/** @throws GearmanError `invalid-argument` unless the key has at most 63 bytes and no NUL */
export function checkUnique(unique: string): void {
  if (fits(unique, MAX_UNIQUE_BYTES)) return;
  refuse(
    'unique key',
    unique,
    `give it at most ${MAX_UNIQUE_BYTES} bytes without a NUL; for a longer key, use its hash`,
  );
}

/** @throws GearmanError `invalid-argument` unless the handle has 1 to 63 bytes and no NUL */
export function checkHandle(handle: string): void {
  if (fits(handle, MAX_HANDLE_BYTES) && handle !== '') return;
  refuse('job handle', handle, 'use the handle that the job server returned');
}

/** @throws GearmanError `invalid-argument` unless the number is a non-negative integer */
export function checkCount(number: number): void {
  if (Number.isSafeInteger(number) && number >= 0) return;
  refuse('number', number, 'give a whole number of at least 0');
}

/** @throws GearmanError `invalid-argument` for anything but text or bytes */
export function checkPayload(payload: string | Uint8Array): void {
  if (typeof payload === 'string' || types.isUint8Array(payload)) return;
  refuse('payload', payload, 'give it as a string or a Uint8Array; convert an object with JSON.stringify');
}

/** @throws GearmanError `invalid-argument` for anything but text without a NUL */
export function checkText(what: string, text: string): void {
  if (fits(text, Number.POSITIVE_INFINITY)) return;
  refuse(what, text, 'give it as a string without a NUL');
}

/** @throws GearmanError `invalid-argument` unless the value is one of the choices */
export function checkChoice(what: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value)) refuse(what, value, `use ${choices.join(' or ')}`);
}

/** @throws GearmanError `invalid-argument` unless the option is undefined or a number from `min` to `max` */
export function checkRange(what: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (typeof value === 'number' && value >= min && value <= max)) return;
  refuse(what, value, `give a number from ${min} to ${max}`);
}

/** The name of each option of a type. */
export type OptionNames<Options> = Readonly<Record<keyof Options, true>>;

/**
 * @throws GearmanError `invalid-argument` unless the value is an object without unknown options, because a misspelt
 * option has no effect
 */
export function checkNames<Options extends object>(
  what: string,
  options: Options,
  names: OptionNames<Options>,
): void {
  if (typeof options !== 'object' || options === null) refuse(what, options, 'give an object');
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown !== undefined) {
    refuse(`name of an option in ${what}`, unknown, `use ${Object.keys(names).join(', ')}`);
  }
}

/** @throws GearmanError `invalid-argument` unless the value is a port number or 0 */
export function checkPort(what: string, port: number): void {
  if (Number.isInteger(port) && port >= 0 && port <= MAX_PORT) return;
  refuse(what, port, `give a whole number up to ${MAX_PORT}`);
}

/** @throws GearmanError `invalid-argument` */
export function refuse(what: string, value: unknown, remedy: string): never {
  throw new GearmanError('invalid-argument', `the ${what} ${shown(value)} cannot be used: ${remedy}`);
}

function fits(text: unknown, limit: number): boolean {
  if (typeof text !== 'string' || text.includes('\0')) return false;
  // A character takes at most three bytes. Counting the bytes takes ten times as long.
  return 3 * text.length <= limit || Buffer.byteLength(text) <= limit;
}

/** Describes an argument for an error message. Does not convert objects to text: that could run their code. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return `(${value === null ? 'null' : typeof value})`;
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
}
