import type { Logger } from '@nodepool-builder/image-builder';

/** Logger of commands: prints warnings and errors on standard error. */
export const STANDARD_ERROR_LOGGER: Logger = {
  debug: () => {},
  info: () => {},
  warn: print,
  error: print,
};

function print(message: string): void {
  console.error(`nodepool-builder: ${message}`);
}
