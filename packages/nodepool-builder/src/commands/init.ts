import { constants, existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import { CommandError, failing } from '../terms/command-error.ts';
import { exampleOf } from './options.ts';

/** The example in the published package, or else in the repository. */
const EXAMPLE = [
  join(import.meta.dirname, '../../examples/nodepool.yaml'),
  join(import.meta.dirname, '../../../../examples/nodepool.yaml'),
];

/** `init`: writes a first `nodepool.yaml`. */
export function register(program: Command): void {
  program
    .command('init')
    .description(
      'Writes a commented nodepool.yaml to begin with: a directory for images, one disk image, and one provider. It never ' +
        'overwrites a file.',
    )
    .option('--output <file>', 'file to write', 'nodepool.yaml')
    .addHelpText('after', exampleOf('init --output nodepool.yaml'))
    .action(async ({ output }: { readonly output: string }) => {
      const unwritable = failing(`${output} cannot be written`, 'name another file with --output');
      await copyFile(EXAMPLE.find(existsSync) ?? '', output, constants.COPYFILE_EXCL).catch((error) => {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return unwritable(error);
        throw new CommandError(
          `${output} exists, and is not overwritten; name another file with --output`,
          'refused',
        );
      });
      console.log(
        `wrote ${output}; change it, then:\n` +
          `  nodepool-builder validate --strict -c ${output}\n` +
          `  nodepool-builder doctor -c ${output}\n` +
          `  nodepool-builder --all-in-one -d -c ${output}`,
      );
    });
}
