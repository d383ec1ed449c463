import { styleText } from 'node:util';
import { hiddenTexts } from '@nodepool-builder/image-builder/internal';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type LoadedConfiguration, loadConfiguration } from '../configuration/load.ts';
import type { Modules } from '../configuration/modules.ts';
import { CommandError, choiceOf } from '../terms/command-error.ts';
import { append, positiveInteger } from '../terms/option-values.ts';
import { ConfigurationError } from '../yaml/diagnostic.ts';
import { AREAS, type Check, type CheckRecord, runChecks } from './doctor/checks.ts';
import { siteChecks } from './doctor/site-checks.ts';
import { configOption, exampleOf, secureOption } from './options.ts';
import { untilStopSignal } from './stop-signal.ts';

interface DoctorOptions {
  readonly config: string;
  readonly secure?: string;
  readonly only?: readonly string[];
  readonly timeout: number;
  readonly json?: true;
}

/** Default time limit of a check, in seconds. */
const TIME_LIMIT = 20;

const AREA_NAMES = Object.keys(AREAS);

/** `doctor`: checks a site. */
export function register(program: Command, modules: () => Promise<Modules>): void {
  program
    .command('doctor')
    .description(
      'Checks everything that a site needs, and suggests what to do: the configuration, the tools and permissions of builds, disk ' +
        'space, images-dir, job servers, providers with their credentials and quotas, Zuul, the store of the manager, the ' +
        'clock. It changes nothing. It fails if there is a problem; warnings do not count.',
    )
    .addOption(configOption())
    .addOption(secureOption())
    .addOption(
      new Option(
        '--only <area>',
        `check only this area; repeat it for more: ${AREA_NAMES.join(', ')}`,
      ).argParser(parseArea),
    )
    .addOption(
      new Option('--timeout <seconds>', 'time limit of each check')
        .argParser(positiveInteger)
        .default(TIME_LIMIT),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', exampleOf('doctor -c nodepool.yaml'))
    .action((options: DoctorOptions) =>
      untilStopSignal(async (signal) => doctor(options, await modules(), signal)),
    );
}

function parseArea(name: string, areas?: readonly string[]): readonly string[] {
  if (AREA_NAMES.includes(name)) return append(name, areas);
  throw new InvalidArgumentError(choiceOf(AREA_NAMES));
}

async function doctor(options: DoctorOptions, modules: Modules, signal: AbortSignal): Promise<void> {
  const results = await examine(options, modules, signal);
  if (options.json) console.log(JSON.stringify(results, null, 2));
  else print(results);
  if (results.some(({ status }) => status === 'problem')) throw new CommandError(''); // the problems have been printed
}

async function examine(
  { config, secure, timeout, only }: DoctorOptions,
  modules: Modules,
  signal: AbortSignal,
): Promise<readonly CheckRecord[]> {
  let loaded: LoadedConfiguration;
  try {
    loaded = await loadConfiguration(config, { modules, secure, checksHost: true });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return await runChecks([refusedFile(error)], timeout, signal); // regardless of --only, because nothing else can be checked
  }
  const site = siteChecks(loaded);
  try {
    const checks = site.checks.filter(
      ({ area, alsoIn = [] }) => only === undefined || [area, ...alsoIn].some((one) => only.includes(one)),
    );
    const secrets = loaded.configuration.diskimages.flatMap((diskimage) => hiddenTexts(diskimage));
    const results = await runChecks(checks, timeout, signal, secrets);
    return only === undefined ? results : results.filter(({ area }) => only.includes(area));
  } finally {
    site[Symbol.dispose]();
  }
}

/** A file that the daemon refuses, so that nothing else can be checked. */
function refusedFile({ file, diagnostics }: ConfigurationError): Check {
  return {
    area: 'configuration',
    subject: file,
    async *run() {
      for (const { line, column, severity, reason, remedy } of diagnostics) {
        const status = severity === 'warning' ? 'warning' : 'problem';
        yield { subject: `${file}:${line}:${column}`, status, message: reason, remedy };
      }
    },
  };
}

const COLORS = { ok: 'green', warning: 'yellow', problem: 'red' } as const;

/** Prints the results below the headings of their areas. */
function print(results: readonly CheckRecord[]): void {
  const width = Math.max(...Object.keys(COLORS).map((status) => status.length));
  for (const [area, found] of Map.groupBy(results, (result) => result.area)) {
    console.log(styleText('bold', AREAS[area]));
    for (const { status, subject, message, remedy } of found) {
      const shown = styleText(COLORS[status], status.padEnd(width));
      console.log(`  ${shown}  ${subject}: ${message}`);
      if (remedy !== null) console.log(`  ${' '.repeat(width)}  to do: ${remedy}`);
    }
  }
  const count = (wanted: CheckRecord['status']): number =>
    results.filter(({ status }) => status === wanted).length;
  console.log(`${count('ok')} ok; warnings: ${count('warning')}; problems: ${count('problem')}`);
}
