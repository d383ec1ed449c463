import { GearmanError } from './errors.ts';

/** libgearman takes no longer function name, and a name of 8 KiB makes gearmand cut off whoever grabs its job. */
export const MAX_FUNCTION_NAME_BYTES = 512;

/** gearmand cuts a longer unique key short without a word, or refuses it. */
export const MAX_UNIQUE_BYTES = 63;

/** gearmand hangs up on a status request with a longer handle. */
export const MAX_HANDLE_BYTES = 63;

/** @throws GearmanError `invalid-argument` unless the name has 1 to 512 bytes and no NUL */
export function checkFunctionName(name: string): void {
  if (name.length > 0 && fits(name, MAX_FUNCTION_NAME_BYTES)) return;
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
  if (handle.length > 0 && fits(handle, MAX_HANDLE_BYTES)) return;
  refuse('job handle', handle, 'take the one that the job server gave');
}

/** @throws GearmanError `invalid-argument` unless the number is whole and not negative */
export function checkCount(number: number): void {
  if (Number.isSafeInteger(number) && number >= 0) return;
  refuse('number', String(number), 'round it, to 0 or above');
}

function fits(text: string, limit: number): boolean {
  if (text.includes('\0')) return false;
  // No character of a string has more than three bytes; counting them takes ten times as long.
  return 3 * text.length <= limit || Buffer.byteLength(text) <= limit;
}

function refuse(what: string, text: string, remedy: string): never {
  const shown = JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
  throw new GearmanError('invalid-argument', `no job server takes the ${what} ${shown}: ${remedy}`);
}
