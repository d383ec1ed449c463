import { styleText } from 'node:util';
import type { Logger } from '@nodepool-builder/image-builder';
import { type ExitReason, exitReasonOf } from './exit-codes.ts';
import { isJournal, prioritized } from './journal.ts';
import { oneLine } from './printable.ts';

/** Ends a command with a message for the person at the terminal, and an exit code. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly exitReason: ExitReason;

  constructor(message: string, exitReason: ExitReason = 'failed', options?: ErrorOptions) {
    super(message, options);
    this.exitReason = exitReason;
  }
}

/** An error of the command line that commander does not find. */
export function usageError(message: string): CommandError {
  return new CommandError(message, 'usage');
}

/** Formats the valid names for the end of a message about a wrong name. */
export function choiceOf(names: readonly string[]): string {
  return names.length === 0 ? 'there are none' : `choose one of: ${names.join(', ')}`;
}

/** @throws CommandError with the valid names if no entry has the name */
export function findByName<T extends { readonly name: string }>(
  entries: readonly T[],
  kind: string,
  name: string,
  file: string,
): T {
  const found = entries.find((entry) => entry.name === name);
  if (found !== undefined) return found;
  const names = entries.map((entry) => entry.name);
  throw new CommandError(`${kind} "${name}" is not in ${file}; ${choiceOf(names)}`, 'not-found');
}

/** Returns the message of an error, on one line. */
export function errorLine(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error));
}

/**
 * Handler of a rejection that throws a CommandError with what failed, why, and what to do.
 *
 * @param ifMissing exit reason if a file does not exist
 */
export function failing(
  what: string,
  remedy: string,
  ifMissing: ExitReason = 'failed',
): (cause: unknown) => never {
  return (cause) => {
    const isMissing = cause instanceof Error && 'code' in cause && cause.code === 'ENOENT';
    const exitReason = isMissing ? ifMissing : exitReasonOf(cause);
    throw new CommandError(`${what}: ${errorLine(cause)}; ${remedy}`, exitReason, { cause });
  };
}

/** Prints a warning or an error for the person at the terminal. */
export function warn(message: string): void {
  const text = `${styleText('yellow', 'nodepool-builder:', { stream: process.stderr })} ${oneLine(message)}`;
  console.error(isJournal('stderr') ? prioritized(text, 'warn') : text);
}

/** Logger of commands: prints warnings and errors on standard error. */
export const STANDARD_ERROR_LOGGER: Logger = { debug: () => {}, info: () => {}, warn, error: warn };

/** Options of commands that print JSON. */
export interface JsonOptions {
  readonly json?: true;
  /** File for the JSON, in addition to the output. */
  readonly jsonFile?: string;
}

/**
 * Prints a result as JSON or as lines, and writes its JSON to the file of `--json-file`.
 *
 * @throws CommandError if the file cannot be written
 */
export async function printResult(
  result: unknown,
  lines: readonly string[],
  { json, jsonFile }: JsonOptions,
): Promise<void> {
  const text = JSON.stringify(result, null, 2);
  for (const line of json ? [text] : lines) console.log(line);
  if (jsonFile === undefined) return;
  // Imported on demand, so that --help starts faster.
  const { writeDurably } = await import('@nodepool-builder/image-builder/internal');
  const unwritable = failing(`cannot write ${jsonFile}`, 'choose another --json-file');
  await writeDurably(jsonFile, `${text}\n`, 0o644).catch(unwritable);
}
