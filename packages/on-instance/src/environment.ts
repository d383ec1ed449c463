import { type BuildContext, ImageError } from '@nodepool-builder/image-builder';
import { checkedVariables } from '@nodepool-builder/image-builder/module-kit';

const NAME = /^[A-Za-z_]\w*$/;

/**
 * Variables of steps in addition to those of the machine: `NODEPOOL_*` of the builder's environment, which nodepool's
 * scripts expect, and the `env-vars` of the disk image.
 *
 * @param scriptDirectory on the machine
 * @throws ImageError `invalid-configuration`
 */
export function stepEnvironment(
  { environment, diskimage }: Pick<BuildContext, 'environment' | 'diskimage'>,
  scriptDirectory: string,
): Record<string, string> {
  const inherited = Object.entries(environment).filter(([name]) => /^NODEPOOL_\w+$/.test(name));
  const variables = {
    ...Object.fromEntries(inherited),
    NODEPOOL_SCRIPTDIR: scriptDirectory,
    ...checkedVariables(diskimage),
  };
  return Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) => {
      if (value === undefined) return [];
      if (NAME.test(name)) return [[name, value]];
      throw new ImageError(
        'invalid-configuration',
        `disk image "${diskimage.name}": no shell knows a variable called "${name}"; correct it in env-vars`,
      );
    }),
  );
}
