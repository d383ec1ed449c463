import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';

/**
 * Checks and returns the `env-vars` of a disk image.
 *
 * @throws ImageError `invalid-configuration` for a value that is not a string, a NUL, or an invalid name
 */
export function checkedVariables({ name, envVars = {} }: DiskImage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(envVars).map(([key, value]) => {
      const fault = variableFault(key, value);
      if (fault === undefined) return [key, value as string];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${name}": variable ${JSON.stringify(key)} in env-vars ${fault}`,
      );
    }),
  );
}

/** Reason why an entry of `env-vars` is invalid, and the remedy. The value is left out: it may be a secret. */
export function variableFault(name: string, value: unknown): string | undefined {
  const isName = name !== '' && !name.includes('=') && !name.includes('\0');
  if (!isName) return 'has a name that is empty or contains "=" or a NUL; correct the name';
  if (typeof value !== 'string') return 'is not a string; put it in quotes';
  return value.includes('\0') ? 'contains a NUL; remove it' : undefined;
}
