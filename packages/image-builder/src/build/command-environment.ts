import type { BuildContext } from '../context.ts';
import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { secretValues, withheldVariables } from '../process/inherited-environment.ts';
import { createMask } from './mask.ts';

/**
 * Returns the variables of the command that makes an image. The log names the variables of this process that it lacks.
 *
 * @param variables of the builder; `env-vars` override them
 * @throws ImageError `invalid-configuration`
 */
export function commandVariables(
  { diskimage, environment, log }: BuildContext,
  variables: Readonly<Record<string, string>>,
): Record<string, string> {
  const withheld = withheldVariables(environment);
  if (withheld.length > 0) log(`# variables that this build does not get: ${withheld.join(', ')}`);
  return { ...variables, ...checkedVariables(diskimage) };
}

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

/**
 * The `env-vars` of a disk image as they may be shown: secrets are `***`.
 *
 * @param mask replaces the secrets of the build
 */
export function shownVariables(
  diskimage: DiskImage,
  mask: (text: string) => string,
): Readonly<Record<string, string>> {
  const { secrets = [] } = diskimage;
  return Object.fromEntries(
    Object.entries(checkedVariables(diskimage)).map(([name, value]) => {
      // A mask leaves short secrets as they are.
      const isSecret = secrets.includes(value) || secretValues({ [name]: value }).includes(value);
      return [
        name,
        isSecret && value !== '' ? '***' : createMask(secretValues({ [name]: value }))(mask(value)),
      ];
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
