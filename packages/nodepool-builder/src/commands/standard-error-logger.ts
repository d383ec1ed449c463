import type { Logger } from '@nodepool-builder/image-builder';

/** For commands: what is wrong goes to standard error, the rest nowhere. */
export const STANDARD_ERROR_LOGGER: Logger = {
  debug: () => {},
  info: () => {},
  warn: print,
  error: print,
};

function print(message: string): void {
  console.error(`nodepool-builder: ${message}`);
}
