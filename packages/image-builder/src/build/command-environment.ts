import type { BuildContext } from '../context.ts';
import type { DiskImage } from '../disk-image.ts';
import { ImageError } from '../errors.ts';
import { hiddenValues, hiddenVariables, isPublicVariable } from '../process/hidden-values.ts';
import {
  type Environment,
  inheritedEnvironment,
  withheldVariables,
} from '../process/inherited-environment.ts';
import { maskCredentials } from './material-address.ts';

/**
 * Returns the variables of the command that makes an image. The log names the variables of this process that are
 * withheld.
 *
 * @param variables variables of the builder; `env-vars` override them
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
      const error = variableError(key, value);
      if (error === undefined) return [key, value as string];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${name}": variable ${JSON.stringify(key)} in env-vars ${error}`,
      );
    }),
  );
}

/**
 * Returns the `env-vars` of a disk image for publication, with `***` for the values of variables that are not public.
 *
 * @param mask replaces the secrets of the build
 */
export function shownVariables(
  diskimage: DiskImage,
  mask: (text: string) => string,
): Readonly<Record<string, string>> {
  const { secrets = [], publicVariables } = diskimage;
  return Object.fromEntries(
    Object.entries(checkedVariables(diskimage)).map(([name, value]) => {
      // A mask does not replace short secrets.
      const isShown = value === '' || (isPublicVariable(name, publicVariables) && !secrets.includes(value));
      return [name, isShown ? mask(maskCredentials(value)) : '***'];
    }),
  );
}

/**
 * Returns the texts of a disk image that logs and statements hide.
 *
 * @param inherited variables of its commands that are not its own
 */
export function hiddenTexts(diskimage: DiskImage, inherited: Environment = inheritedEnvironment()): string[] {
  const { secrets = [], publicVariables } = diskimage;
  return [...secrets, ...hiddenValues(variablesOf(diskimage, inherited), publicVariables)];
}

/** Returns a line for the log that names the variables whose values it hides; undefined if there are none. */
export function hiddenNames(
  diskimage: DiskImage,
  inherited: Environment = inheritedEnvironment(),
): string | undefined {
  const hidden = hiddenVariables(variablesOf(diskimage, inherited), diskimage.publicVariables);
  const names = Object.keys(hidden).join(', ');
  return names === ''
    ? undefined
    : `# this log hides the values of ${names}; name those without a secret in public-variables`;
}

function variablesOf({ envVars = {} }: DiskImage, inherited: Environment): Environment {
  const own = Object.entries(envVars).filter(([, value]) => typeof value === 'string');
  return { ...inherited, ...(Object.fromEntries(own) as Record<string, string>) };
}

/**
 * Returns the reason why an entry of `env-vars` is invalid, and the remedy. It omits the value, which may be a secret.
 */
export function variableError(name: string, value: unknown): string | undefined {
  const isName = name !== '' && !name.includes('=') && !name.includes('\0');
  if (!isName) return 'has a name that is empty or contains "=" or a NUL; correct the name';
  if (typeof value !== 'string') return 'is not a string; put it in quotes';
  return value.includes('\0') ? 'contains a NUL; remove it' : undefined;
}
