import { types } from 'node:util';
import { GearmanError } from './errors.ts';

/** libgearman takes no longer function name, and a name of 8 KiB makes gearmand cut off whoever grabs its job. */
export const MAX_FUNCTION_NAME_BYTES = 512;

/** gearmand cuts a longer unique key short without a word, or refuses it. */
export const MAX_UNIQUE_BYTES = 63;

/** gearmand hangs up on a status request with a longer handle. */
export const MAX_HANDLE_BYTES = 63;

/** The longest delay of setTimeout, in milliseconds; about 25 days. It takes a longer one for 1. */
export const MAX_TIMER_DELAY: number = 2 ** 31 - 1;

/** The last port. */
const MAX_PORT = 65_535;

/** Characters of a refused argument that an error message shows. */
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
    `give it at most ${MAX_UNIQUE_BYTES} bytes without a NUL; a hash of a longer one will do`,
  );
}

/** @throws GearmanError `invalid-argument` unless the handle has 1 to 63 bytes and no NUL */
export function checkHandle(handle: string): void {
  if (fits(handle, MAX_HANDLE_BYTES) && handle !== '') return;
  refuse('job handle', handle, 'take the one that the job server gave');
}

/** @throws GearmanError `invalid-argument` unless the number is whole and not negative */
export function checkCount(number: number): void {
  if (Number.isSafeInteger(number) && number >= 0) return;
  refuse('number', number, 'round it, to 0 or above');
}

/** @throws GearmanError `invalid-argument` for anything but text or bytes */
export function checkPayload(payload: string | Uint8Array): void {
  if (typeof payload === 'string' || types.isUint8Array(payload)) return;
  refuse(
    'payload',
    payload,
    'give it as a string or a Uint8Array; JSON.stringify makes a string of an object',
  );
}

/** @throws GearmanError `invalid-argument` for anything but text without a NUL */
export function checkText(what: string, text: string): void {
  if (fits(text, Number.POSITIVE_INFINITY)) return;
  refuse(what, text, 'give it as a string without a NUL');
}

/** @throws GearmanError `invalid-argument` unless the value is one of those */
export function checkChoice(what: string, value: string, choices: readonly string[]): void {
  if (!choices.includes(value)) refuse(what, value, `take ${choices.join(' or ')}`);
}

/** @throws GearmanError `invalid-argument` unless the option, if it is given, is a number from `min` to `max` */
export function checkRange(what: string, value: number | undefined, min: number, max: number): void {
  if (value === undefined || (typeof value === 'number' && value >= min && value <= max)) return;
  refuse(what, value, `give a number from ${min} to ${max}`);
}

/** @throws GearmanError `invalid-argument` unless it is a port; 0 is one too */
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
  // No character of a string has more than three bytes; counting them takes ten times as long.
  return 3 * text.length <= limit || Buffer.byteLength(text) <= limit;
}

/** Describes an argument in an error message. Objects are not converted to text: that could call their code. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'string') return `(${value === null ? 'null' : typeof value})`;
  return JSON.stringify(value.length > MAX_SHOWN ? `${value.slice(0, MAX_SHOWN)}…` : value);
}
