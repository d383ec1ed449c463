import { resolve } from 'node:path';
import { styleText } from 'node:util';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { type Command, Option } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { jsonSchema } from '../configuration/schema.ts';
import { CommandError, usageError } from '../terms/command-error.ts';
import type { ExitReason } from '../terms/exit-codes.ts';
import { recordSchema, TEXT } from '../terms/record-schema.ts';
import { counted } from '../terms/units.ts';
import { ConfigurationError, formatDiagnostic } from '../yaml/diagnostic.ts';
import { configOption, exampleOf, secureOption } from './options.ts';

interface ValidateOptions {
  readonly config: string;
  readonly secure?: string;
  readonly schema?: true;
  readonly json?: true;
  readonly strict?: true;
}

const COUNT_OR_NULL = { type: ['integer', 'null'], minimum: 0 } as const;
const POSITION = { type: 'integer', minimum: 1 } as const;

/** Schema of the validation of one file. */
export const VALIDATED_FILE = recordSchema({
  file: { ...TEXT, description: 'Absolute path.' },
  valid: { type: 'boolean', description: 'False if the command fails because of this file.' },
  diskimages: { ...COUNT_OR_NULL, description: 'Number of disk images; null if the file cannot be used.' },
  providers: { ...COUNT_OR_NULL, description: 'Number of providers; null if the file cannot be used.' },
  diagnostics: {
    type: 'array',
    items: recordSchema({
      file: { ...TEXT, description: 'The file, or another one that it needs.' },
      line: POSITION,
      column: POSITION,
      severity: {
        enum: ['error', 'job-error', 'warning'],
        description:
          '`error`: the daemon refuses the file. `job-error`: jobs of an image fail on every host. `warning`: anything else.',
      },
      reason: TEXT,
      remedy: TEXT,
    }),
  },
});

type ValidatedFile = SettingsOf<typeof VALIDATED_FILE>;

/** `validate [FILE…]`: checks configuration files. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('validate')
    .description(
      'Checks configuration files. It reports each error with its line and a remedy, and warns of directories, ' +
        'programs and elements that this host lacks. It fails if the daemon would refuse a file, or if the jobs of an image would ' +
        'fail on every host.',
    )
    .argument('[file...]', 'configuration files, instead of -c')
    .addOption(configOption())
    .addOption(secureOption())
    .option('--strict', 'also fail because of warnings')
    .option('--json', 'print JSON; validate.schema.json of the package is its JSON Schema')
    .addOption(
      new Option(
        '--schema',
        'print a JSON Schema for editors instead, with the keys of the plugins in the file',
      ).conflicts(['json', 'strict']),
    )
    .addHelpText('after', exampleOf('validate --strict nodepool.yaml'))
    .action(async (files: readonly string[], options: ValidateOptions, command: Command) => {
      if (files.length > 0 && command.getOptionValueSource('config') === 'cli') {
        command.error('error: files are given both with and without -c; leave out -c');
      }
      const paths = files.length > 0 ? files : [options.config];
      await (options.schema
        ? printSchema(paths, await modules())
        : validate(paths, options, await modules()));
    });
}

async function printSchema(files: readonly string[], modules: Modules): Promise<void> {
  const [file = '', ...others] = files;
  if (others.length > 0) throw usageError('--schema takes one file; omit the others');
  const { plugins } = await loadConfiguration(file, { modules });
  console.log(JSON.stringify(jsonSchema(plugins.modules), null, 2));
}

async function validate(
  files: readonly string[],
  { json, ...options }: ValidateOptions,
  modules: Modules,
): Promise<void> {
  const results: ValidatedFile[] = [];
  const failures = new Set<ExitReason>();
  for (const file of files) {
    const { exitReason, ...result } = await validateFile(file, options, modules);
    results.push(result);
    if (exitReason !== undefined) failures.add(exitReason);
    if (!json) printValidated(result);
  }
  if (json) console.log(JSON.stringify(results, null, 2));
  const [exitReason, ...others] = failures;
  if (exitReason === undefined) return;
  throw new CommandError('', others.length > 0 ? 'failed' : exitReason); // the diagnostics have been printed
}

async function validateFile(
  path: string,
  { secure, strict }: ValidateOptions,
  modules: Modules,
): Promise<ValidatedFile & { readonly exitReason?: ExitReason }> {
  const file = resolve(path);
  try {
    const { configuration, warnings } = await loadConfiguration(file, { modules, secure, checksHost: true });
    const isInvalid = warnings.some(({ severity }) => strict || severity === 'job-error');
    return {
      file,
      valid: !isInvalid,
      diskimages: configuration.diskimages.length,
      providers: configuration.providers.length,
      diagnostics: warnings.map((warning) => ({ file, ...warning })),
      ...(isInvalid && { exitReason: 'failed' }),
    };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const diagnostics = error.diagnostics.map((diagnostic) => ({ file: error.file, ...diagnostic }));
    const { exitReason } = error;
    return { file, valid: false, diskimages: null, providers: null, diagnostics, exitReason };
  }
}

function printValidated({ file, valid, diskimages, providers, diagnostics }: ValidatedFile): void {
  const yellow = styleText('yellow', ' warning: ', { stream: process.stderr });
  for (const diagnostic of diagnostics) {
    const text = formatDiagnostic(diagnostic.file, diagnostic);
    console.error(diagnostic.severity === 'warning' ? text.replace(' warning: ', yellow) : text);
  }
  if (valid)
    console.log(`${file} is valid: ${counted(diskimages, 'disk image')}, ${counted(providers, 'provider')}`);
}
