import type { ObjectSchema, ProviderModule } from '@nodepool-builder/image-builder';
import { type SettingsSchema, visible } from '@nodepool-builder/image-builder/module-kit';
import { MANAGER } from '../configuration/manager.ts';
import { DEFAULT_PROVIDER_TYPE } from '../configuration/provider-schema.ts';
import { GENERAL } from '../configuration/schema.ts';

/** Answers to `init`. All paths are absolute. */
export interface InitialSettings {
  readonly imagesDirectory: string;
  readonly elementsDirectory?: string | undefined;
  readonly diskimage: string;
  readonly elements: readonly string[];
  /** Debian release of the image. Empty for none. */
  readonly release: string;
  readonly providers: readonly InitialProvider[];
  /** Addresses of job servers. Empty if the daemon runs its own job server. */
  readonly jobServers: readonly { readonly host: string; readonly port?: number }[];
  /** Whether the same process runs the manager. */
  readonly allInOne: boolean;
}

/** An entry of `providers`. */
export interface InitialProvider {
  readonly name: string;
  readonly module: ProviderModule;
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Maximum width of the comments. */
const WIDTH = 100;

/** Formats a `nodepool.yaml` whose comments come from the schema. @param file path of the file, for the comments */
export function initialConfiguration(settings: InitialSettings, file: string): string {
  const shown = visible(file);
  const { imagesDirectory, elementsDirectory, jobServers, allInOne } = settings;
  const general = GENERAL.properties;
  const start = allInOne ? 'nodepool-builder --all-in-one -d' : 'nodepool-builder -d';
  const sections = [
    [
      '# Configuration of nodepool-builder, written by "nodepool-builder init".',
      `# Check it:      nodepool-builder validate -c ${shown}`,
      `# Check a host:  nodepool-builder doctor -c ${shown}`,
      `# Start it:      ${start} -c ${shown}`,
    ],
    [...comment(general['images-dir']), `images-dir: ${scalar(imagesDirectory)}`],
    elementsDirectory === undefined
      ? [...comment(general['elements-dir']), '# elements-dir: /etc/nodepool/elements']
      : [...comment(general['elements-dir']), `elements-dir: ${scalar(elementsDirectory)}`],
    [...comment(general['build-log-dir']), '# build-log-dir: /var/log/nodepool/builds'],
    [
      ...comment(general['gearman-servers']),
      ...(jobServers.length === 0
        ? ['# gearman-servers:', '#   - host: gearman.example.com']
        : ['gearman-servers:', ...jobServers.flatMap(jobServerLines)]),
    ],
    managerLines(settings),
    diskImageLines(settings),
    providerLines(settings),
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function jobServerLines({ host, port }: InitialSettings['jobServers'][number]): readonly string[] {
  return [`  - host: ${scalar(host)}`, ...(port === undefined ? [] : [`    port: ${port}`])];
}

function managerLines({ allInOne }: InitialSettings): readonly string[] {
  const keys = ['store', 'retry-delay'] as const;
  if (!allInOne)
    return [
      '# The manager decides what is built and uploaded. Without a manager, nodepool decides.',
      '# manager: {}',
    ];
  return [
    '# The manager decides what is built, uploaded, kept and deleted. --all-in-one runs it.',
    'manager:',
    ...keys.flatMap((key) => [
      ...comment(MANAGER.properties[key], '  '),
      `  ${key === 'store' ? '# store: postgresql://user@host/database' : `${key}: ${MANAGER.properties[key].default}`}`,
    ]),
  ];
}

function diskImageLines({ diskimage, elements, release }: InitialSettings): readonly string[] {
  return [
    '# Images that this builder builds, with diskimage-builder unless "builder" names another way.',
    'diskimages:',
    `  - name: ${scalar(diskimage)}`,
    `    elements: [${elements.map(scalar).join(', ')}]`,
    ...(release === '' ? [] : [`    release: ${scalar(release)}`]),
    '    # Age in seconds at which the manager rebuilds the image. Default: a day.',
    '    # rebuild-age: 86400',
    '    # Variables for the elements.',
    '    # env-vars: {DIB_DEBIAN_COMPONENTS: main}',
  ];
}

function providerLines({ providers, diskimage }: InitialSettings): readonly string[] {
  const heading = '# Providers to upload images to.';
  if (providers.length === 0) return [heading, 'providers: []'];
  return [heading, 'providers:', ...providers.flatMap((provider) => entryLines(provider, diskimage))];
}

function entryLines({ name, module, settings }: InitialProvider, diskimage: string): readonly string[] {
  const { properties }: ObjectSchema = module.settings;
  // A short form is for one upload. Settings with a default keep it here.
  const own = Object.entries(settings).filter(([key]) => properties[key]?.default === undefined);
  return [
    `  - name: ${scalar(name)}`,
    ...(module.type === DEFAULT_PROVIDER_TYPE ? [] : [`    type: ${scalar(module.type)}`]),
    ...own.flatMap(([key, value]) => [
      ...comment(properties[key], '    '),
      `    ${key}: ${typeof value === 'string' ? scalar(value) : JSON.stringify(value)}`,
    ]),
    '    images:',
    `      - name: ${scalar(diskimage)}`,
    `        diskimage: ${scalar(diskimage)}`,
  ];
}

/** Text that YAML reads as a string without quotes. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[a-z_/][\w./@:-]*(?<!:)$/i;

function scalar(text: string): string {
  return PLAIN.test(text) ? text : JSON.stringify(text);
}

/** Formats the description of a key as comments, without its links to the documents. */
function comment(schema: SettingsSchema | undefined, indent = ''): readonly string[] {
  const text = (schema?.description ?? '').replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, '$1').replaceAll('`', '');
  const lines: string[] = [];
  for (const word of text.split(/\s+/).filter(Boolean)) {
    const last = lines.at(-1);
    const longer = `${last ?? ''} ${word}`;
    if (last === undefined || longer.length > WIDTH) lines.push(`${indent}# ${word}`);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
