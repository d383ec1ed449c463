import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { ImageError, type ProviderModule } from '@nodepool-builder/image-builder';
import { shellWords } from '@nodepool-builder/image-builder/module-kit';
import type { Command } from 'commander';
import { loadConfiguration } from '../configuration/load.ts';
import { type Modules, SHORT_FORMS } from '../configuration/modules.ts';
import { DEFAULT_PROVIDER_TYPE } from '../configuration/provider-schema.ts';
import { CommandError, choiceOf, failing, usageError } from '../terms/command-error.ts';
import { append } from '../terms/option-values.ts';
import { ConfigurationError } from '../yaml/diagnostic.ts';
import { type InitialProvider, type InitialSettings, initialConfiguration } from './initial-configuration.ts';
import { exampleOf } from './options.ts';
import { untilStopSignal } from './stop-signal.ts';

interface InitOptions {
  readonly output: string;
  readonly imagesDir?: string;
  readonly elementsDir?: string;
  readonly diskimage?: string;
  readonly elements?: string;
  readonly release?: string;
  readonly provider?: readonly string[];
  readonly cloud?: readonly string[];
  readonly gearmanServer?: readonly string[];
  readonly allInOne?: true;
  readonly yes?: true;
}

/** `init`: writes a first `nodepool.yaml`. */
export function registerInit(program: Command, modules: Modules): void {
  program
    .command('init')
    .description(
      'Writes a commented nodepool.yaml. On a terminal it prompts for what the options do not set; elsewhere, and with --yes, ' +
        'it uses the defaults. It never overwrites a file.',
    )
    .option('--output <file>', 'file to write', 'nodepool.yaml')
    .option('--images-dir <directory>', `directory of the images (default: ${DEFAULTS.imagesDir})`)
    .option('--elements-dir <directory>', 'directory of your own elements')
    .option('--diskimage <name>', `name of the first disk image (default: ${DEFAULTS.diskimage})`)
    .option('--elements <words>', `its elements, in one argument (default: ${DEFAULTS.elements})`)
    .option(
      '--release <name>',
      `its release, for the elements (default: ${DEFAULTS.release}; with --elements: none)`,
    )
    .option(
      '--provider <name:type:text>',
      `provider to upload to; repeat it for more: ${SHORT_FORM_NAMES.join(', ')}`,
      append,
    )
    .option('--cloud <name>', 'cloud of clouds.yaml to upload to; repeat it for more', append)
    .option(
      '--gearman-server <host[:port]>',
      'job server; repeat it for more (default: the daemon runs one)',
      append,
    )
    .option('--all-in-one', 'the daemon also runs the manager')
    .option('-y, --yes', 'use defaults instead of prompting')
    .addHelpText(
      'after',
      exampleOf('init --diskimage debian --cloud west --all-in-one --output nodepool.yaml'),
    )
    .action((options: InitOptions) => untilStopSignal((signal) => init(options, modules, signal)));
}

const DEFAULTS = {
  imagesDir: '/opt/nodepool/images',
  diskimage: 'debian',
  elements: 'debian-minimal debian-fixes vm cloud-init',
  release: 'trixie',
} as const;

/** The forms of --provider: `NAME:directory:PATH`. */
const SHORT_FORM_NAMES = Array.from(SHORT_FORMS, ([type, { placeholder }]) => `NAME:${type}:${placeholder}`);

async function init(options: InitOptions, modules: Modules, signal: AbortSignal): Promise<void> {
  const output = resolve(options.output);
  if (existsSync(output)) throw taken(output);
  const isAsking = !options.yes && process.stdin.isTTY && process.stdout.isTTY;
  const answers = isAsking ? await ask(options, signal) : options;
  const settings = toSettings(answers, modules);
  const text = initialConfiguration(settings, options.output);
  await check(text, modules);
  const unwritable = failing(`${output} cannot be written`, 'name another file with --output');
  await writeFile(output, text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST') throw taken(output);
    return unwritable(error);
  });
  const file = options.output;
  const run = settings.allInOne ? 'nodepool-builder --all-in-one -d' : 'nodepool-builder -d';
  console.log(
    [
      `wrote ${file}; next:`,
      ...(existsSync(settings.imagesDirectory) ? [] : [`  mkdir -p ${settings.imagesDirectory}`]),
      `  nodepool-builder validate --strict -c ${file}`,
      `  nodepool-builder doctor -c ${file}`,
      `  ${run} -c ${file}`,
    ].join('\n'),
  );
}

function taken(output: string): CommandError {
  return new CommandError(`${output} exists; name another file with --output`, {
    exitReason: 'refused',
  });
}

/** Prompts for what the options do not set. An empty answer selects the default. */
async function ask(options: InitOptions, signal: AbortSignal): Promise<InitOptions> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout, signal });
  const lines = terminal[Symbol.asyncIterator](); // keeps lines that are pasted together, unlike question()
  const question = async (text: string, known: string | undefined, otherwise: string): Promise<string> => {
    if (known !== undefined) return known;
    terminal.setPrompt(`${text} [${otherwise === '' ? 'none' : otherwise}]: `);
    terminal.prompt();
    const line = await lines.next();
    signal.throwIfAborted();
    if (!line.done) return line.value.trim() || otherwise;
    throw new CommandError('the questions were not answered; nothing was written', {
      exitReason: 'cancelled',
    });
  };
  const list = async (text: string, known: readonly string[] | undefined): Promise<readonly string[]> =>
    known ?? (await question(text, undefined, '')).split(/[\s,]+/).filter(Boolean);
  try {
    const imagesDir = await question('Directory of the images', options.imagesDir, DEFAULTS.imagesDir);
    const diskimage = await question('Name of the first disk image', options.diskimage, DEFAULTS.diskimage);
    const elements = await question('Its elements of diskimage-builder', options.elements, DEFAULTS.elements);
    const release = await question('Its release', options.release, releaseFor(elements));
    const cloud = await list('Clouds of clouds.yaml to upload to', options.cloud);
    const provider = await list('Other providers to upload to, as NAME:TYPE:TEXT', options.provider);
    const gearmanServer = await list('Job servers, as HOST or HOST:PORT', options.gearmanServer);
    const manager = options.allInOne
      ? 'yes'
      : await question('Also run the manager (yes or no)', undefined, 'yes');
    return {
      ...options,
      imagesDir,
      diskimage,
      elements,
      release,
      cloud,
      provider,
      gearmanServer,
      ...(/^y/i.test(manager) && { allInOne: true }),
    };
  } finally {
    terminal.close();
  }
}

/** Returns the default release for the default elements. */
function releaseFor(elements: string): string {
  return elements === DEFAULTS.elements ? DEFAULTS.release : '';
}

/** @throws CommandError `usage` */
function toSettings(options: InitOptions, modules: Modules): InitialSettings {
  const { imagesDir = DEFAULTS.imagesDir, elementsDir, elements = DEFAULTS.elements } = options;
  const { provider = [], cloud = [], gearmanServer = [] } = options;
  return {
    imagesDirectory: resolve(imagesDir),
    elementsDirectory: elementsDir
      ?.split(':')
      .map((path) => resolve(path))
      .join(':'),
    diskimage: options.diskimage ?? DEFAULTS.diskimage,
    elements: toElements(elements),
    release: options.release ?? releaseFor(elements),
    providers: [
      ...cloud.map((name) => toProvider(`${name}:${DEFAULT_PROVIDER_TYPE}:${name}`, modules)),
      ...provider.map((text) => toProvider(text, modules)),
    ],
    jobServers: gearmanServer.map(toJobServer),
    allInOne: options.allInOne ?? false,
  };
}

function toElements(text: string): readonly string[] {
  try {
    return shellWords(text, 'the list of elements');
  } catch (error) {
    throw error instanceof ImageError ? usageError(error.message) : error;
  }
}

function toProvider(option: string, modules: Modules): InitialProvider {
  const [name = '', type = '', ...rest] = option.split(':');
  const text = rest.join(':');
  const module: ProviderModule | undefined = modules.providers.get(type);
  const shortForm = SHORT_FORMS.get(type);
  if (name === '' || text === '' || module === undefined || shortForm === undefined) {
    throw usageError(`--provider ${option} is invalid; ${choiceOf(SHORT_FORM_NAMES)}`);
  }
  const settings = Object.entries(shortForm.settings(text)).map(([key, value]) => {
    const isPath = ['directory', 'path'].includes(formatOf(module, key));
    return [key, isPath && typeof value === 'string' ? resolve(value) : value] as const;
  });
  return { name, module, settings: Object.fromEntries(settings) };
}

function formatOf({ settings }: ProviderModule, key: string): string {
  const { properties } = settings as {
    readonly properties: Readonly<Record<string, { readonly format?: string }>>;
  };
  return properties[key]?.format ?? '';
}

/** `host`, `host:port` or `[address]:port`. */
const JOB_SERVER = /^(?:\[(?<address>[^\]]+)\]|(?<host>[^:]+))(?::(?<port>\d{1,5}))?$/;

function toJobServer(text: string): InitialSettings['jobServers'][number] {
  const { address, host = address, port } = JOB_SERVER.exec(text)?.groups ?? {};
  if (host === undefined) throw usageError(`--gearman-server ${text} is invalid; write HOST or HOST:PORT`);
  return { host, ...(port !== undefined && { port: Number(port) }) };
}

/** Rejects answers that would make an invalid file before it is written. */
async function check(text: string, modules: Modules): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-builder-init-'));
  try {
    const file = join(directory, 'nodepool.yaml');
    await writeFile(file, text);
    await loadConfiguration(file, { modules });
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    const reasons = error.diagnostics.map(({ reason, remedy }) => `${reason}; ${remedy}`);
    throw usageError(`the answers do not make a valid ${basename(error.file)}: ${reasons.join('. ')}`);
  } finally {
    await rm(directory, { recursive: true });
  }
}
