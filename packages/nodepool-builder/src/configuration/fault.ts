import type { Position } from './yaml-document.ts';

/** One thing that is wrong with a configuration file. */
export interface Fault extends Position {
  /**
   * An error refuses the file. A job error does not, as in the Python builder, but jobs of one image
   * fail on every host, and `validate` refuses the file. A warning is only shown.
   */
  readonly severity: 'error' | 'job-error' | 'warning';
  /** What is wrong, and where: `diskimages[0].name must be a string, but is a number`. */
  readonly reason: string;
  /** What to do about it. */
  readonly remedy: string;
}

/** `file:line:column: reason; remedy`, as editors and compilers write it. */
export function formatFault(file: string, fault: Fault): string {
  const prefix = fault.severity === 'warning' ? 'warning: ' : '';
  return `${file}:${fault.line}:${fault.column}: ${prefix}${fault.reason}; ${fault.remedy}`;
}

/** A configuration that cannot be used. Its message has a line for each fault. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
  readonly faults: readonly Fault[];

  constructor(file: string, faults: readonly Fault[], options?: ErrorOptions) {
    super(faults.map((fault) => formatFault(file, fault)).join('\n'), options);
    this.faults = faults;
  }
}
