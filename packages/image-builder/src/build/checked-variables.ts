import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';

/**
 * The `env-vars` of a disk image.
 *
 * @throws ImageError `invalid-configuration` for a value that is not a string, or holds a NUL
 */
export function checkedVariables({ name, envVars = {} }: DiskImage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(envVars).map(([key, value]) => {
      const fault = variableFault(value);
      if (fault === undefined) return [key, value as string];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${name}": the value of ${key} in env-vars ${fault}`,
      );
    }),
  );
}

/** Reason why a value of `env-vars` is invalid, and the remedy. The value is left out: it may be a secret. */
export function variableFault(value: unknown): string | undefined {
  if (typeof value !== 'string') return 'is not a string; put it in quotes';
  return value.includes('\0') ? 'holds a NUL; remove that' : undefined;
}
