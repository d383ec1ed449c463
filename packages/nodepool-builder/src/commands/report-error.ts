import { styleText } from 'node:util';
import { EXIT_CODES, exitReasonOf } from '../terms/exit-codes.ts';
import { ModuleError } from '../terms/module-error.ts';
import { oneLine } from '../terms/printable.ts';
import { ConfigurationError } from '../yaml/diagnostic.ts';

/**
 * Prints a command's error. An error in a file begins with `file:line:column`, as editors and CI systems expect it.
 *
 * @returns the exit code
 */
export function reportError(error: unknown): number {
  if (!isExpected(error)) console.error(error);
  else if (error instanceof ConfigurationError) console.error(error.message);
  else if (error.message !== '') {
    console.error(
      `${styleText('red', 'nodepool-builder:', { stream: process.stderr })} ${oneLine(error.message)}`,
    );
  }
  return EXIT_CODES[exitReasonOf(error)].code;
}

/**
 * Returns whether the message is enough for a user. Typed errors of packages and plugins have a boolean `retriable`,
 * errors of commands an `exitReason`, and errors of the operating system a `syscall`, which the message names.
 */
function isExpected(error: unknown): error is Error {
  if (error instanceof ConfigurationError || error instanceof ModuleError) return true;
  if (!(error instanceof Error)) return false;
  return (
    'exitReason' in error ||
    'syscall' in error ||
    ('retriable' in error && typeof error.retriable === 'boolean')
  );
}
