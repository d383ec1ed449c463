import type { Diagnostic } from '@nodepool-builder/image-builder';
import type { ExitReason } from '../terms/exit-codes.ts';
import { oneLine } from '../terms/printable.ts';

/** A position in a text. Line and column start at 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * An error or a warning in a configuration file. Its reason begins with the path: `diskimages[0].name must be a
 * string`. As in the Python builder, a job error does not make the file invalid, but it makes `validate` fail.
 */
export interface LocatedDiagnostic extends Position, Required<Omit<Diagnostic, 'pointer'>> {}

/** Formats a diagnostic as `file:line:column: reason; remedy`, like editors and compilers. */
export function formatDiagnostic(file: string, diagnostic: LocatedDiagnostic): string {
  const { line, column, severity, reason, remedy } = diagnostic;
  const place = `${file}:${line}:${column}: ${severity === 'warning' ? 'warning: ' : ''}`;
  return oneLine(`${place}${reason}; ${remedy}`);
}

/** A configuration that cannot be used. Its message has a line for each diagnostic. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly file: string;
  readonly diagnostics: readonly LocatedDiagnostic[];
  readonly exitReason: ExitReason;

  /** @param options.exitReason default: `failed`, also for a file that names a missing one */
  constructor(
    file: string,
    diagnostics: readonly LocatedDiagnostic[],
    options?: ErrorOptions & { readonly exitReason?: ExitReason },
  ) {
    super(diagnostics.map((diagnostic) => formatDiagnostic(file, diagnostic)).join('\n'), options);
    this.file = file;
    this.diagnostics = diagnostics;
    this.exitReason = options?.exitReason ?? 'failed';
  }
}

/** Escapes one key or index of a JSON pointer (RFC 6901, section 3). */
export function escapePointer(segment: string): string {
  return segment.replaceAll('~', '~0').replaceAll('/', '~1');
}

/** Formats `/diskimages/0/name` for messages: `diskimages[0].name`. */
export function humanPath(pointer: string): string {
  const path = pointer
    .replaceAll(/\/(\d+)(?=\/|$)/g, '[$1]')
    .replaceAll('/', '.')
    .replaceAll('~1', '/')
    .replaceAll('~0', '~');
  return path === '' ? 'the file' : path.replace(/^\./, '');
}
