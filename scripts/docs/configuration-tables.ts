import { isDeepStrictEqual } from 'node:util';
import type { SettingsSchema } from '@nodepool-builder/image-builder';
import type { Modules } from '../../packages/nodepool-builder/src/configuration/modules.ts';
import { configurationSchema } from '../../packages/nodepool-builder/src/configuration/schema.ts';
import { ELSEWHERE } from '../../packages/nodepool-builder/src/yaml/schema-node.ts';
import { markdownTable } from '../markdown.ts';

type Properties = Readonly<Record<string, SettingsSchema>>;

/** A generated part of a page in docs/. */
export type GeneratedSection = readonly [page: string, section: string, text: string];

/** Pages of the providers that come with this project, by `type`. */
const PROVIDER_PAGES: Readonly<Record<string, string>> = {
  openstack: 'openstack.md',
  directory: 'directory.md',
  qemu: 'on-instance.md',
  aws: 'aws.md',
  azure: 'azure.md',
  gce: 'gce.md',
  oci: 'oci.md',
  s3: 's3.md',
};

/** Pages of the builders of disk images, by `builder`. */
const BUILDER_PAGES: Readonly<Record<string, string>> = {
  dib: 'diskimage-builder.md',
  command: 'builder-command.md',
  'on-instance': 'on-instance.md',
};

/** Returns the keys of nodepool.yaml: common keys in configuration.md, keys of a type on the page of that type. */
export function configurationSections(modules: Modules): GeneratedSection[] {
  const { properties = {}, required = [] } = configurationSchema(modules);
  const providers = [...modules.providers.values()];
  const builders = [...modules.builders.values()].filter(({ type }) => type in BUILDER_PAGES);
  const { providers: provider = {}, diskimages = {}, 'zuul-images': zuulImages = {} } = properties;
  const cloudImages = without(
    provider.items?.properties?.['cloud-images'] ?? {},
    ...providers.map((module) => module.images?.cloudImages?.properties ?? {}),
  );
  const common: Properties = {
    ...properties,
    diskimages: without(diskimages, ...builders.map(({ settings }) => settings.properties)),
    'zuul-images': { ...zuulImages, items: {} },
    providers: without(
      {
        ...provider,
        items: {
          ...provider.items,
          properties: { ...provider.items?.properties, 'cloud-images': cloudImages },
        },
      },
      ...providers.map(({ settings }) => settings.properties),
    ),
  };
  const sections: (readonly [page: string, section: string, path: string, schema: SettingsSchema])[] = [
    ['configuration.md', 'tables', '', { properties: common, required }],
    ['zuul.md', 'keys', 'zuul-images[]', differing(zuulImages.items, diskimages.items)],
    ...builders.map(
      ({ type, settings }) =>
        [BUILDER_PAGES[type] ?? '', `builder ${type}`, 'diskimages[]', settings] as const,
    ),
    ...providers.flatMap(({ type, settings, images: { cloudImages: own } = {} }) => [
      [pageOf(type), `type ${type}`, 'providers[]', settings] as const,
      ...(Object.keys(own?.properties ?? {}).length === 0
        ? []
        : [[pageOf(type), 'cloud images', 'providers[].cloud-images[]', own ?? {}] as const]),
    ]),
  ];
  const written = new Map<string, Place>();
  return sections.map(([page, section, path, schema]) => [
    page,
    section,
    tables(page, path, schema, written),
  ]);
}

function pageOf(type: string): string {
  const page = PROVIDER_PAGES[type];
  if (page === undefined)
    throw new Error(`provider "${type}" has no page in docs/; add it to PROVIDER_PAGES`);
  return page;
}

/** Returns a list schema without these keys of its items. */
function without(list: SettingsSchema, ...keys: readonly Properties[]): SettingsSchema {
  const entries = Object.entries(list.items?.properties ?? {});
  const left = entries.filter(([key]) => !keys.some((properties) => Object.hasOwn(properties, key)));
  return { ...list, items: { ...list.items, properties: Object.fromEntries(left) } };
}

/** Returns a mapping schema without the keys that mean the same in another mapping. */
function differing(mapping: SettingsSchema = {}, other: SettingsSchema = {}): SettingsSchema {
  const entries = Object.entries(mapping.properties ?? {});
  const own = entries.filter(([key, schema]) => !isDeepStrictEqual(schema, other.properties?.[key]));
  return { ...mapping, properties: Object.fromEntries(own) };
}

/** Table with the keys of a mapping. */
interface Place {
  readonly page: string;
  /** Heading of the table. */
  readonly name: string;
}

/**
 * Returns the keys of a mapping as Markdown: a table, then a section with a heading for each nested mapping.
 *
 * @param written tables by their keys, to which mappings with the same keys link
 */
function tables(page: string, path: string, schema: SettingsSchema, written: Map<string, Place>): string {
  const { properties = {}, required = [] } = schema;
  const entries = Object.entries(properties);
  const read = entries.filter(([, node]) => node.description !== ELSEWHERE && node.not === undefined);
  const within: string[] = [];
  const rows = read.map(([key, node]) => {
    const name = path === '' ? key : `${path}.${key}`;
    const inner = node.items?.properties === undefined ? node : node.items;
    const isMapping = Object.keys(inner.properties ?? {}).length > 0;
    const keys = JSON.stringify(inner.properties ?? {});
    const earlier = written.get(keys);
    if (isMapping && earlier === undefined) {
      written.set(keys, { page, name });
      within.push(`### \`${name}\``, tables(page, inner === node ? name : `${name}[]`, inner, written));
    }
    const reference = isMapping && earlier !== undefined ? ` Keys: ${linkTo(earlier, page)}.` : '';
    return [`\`${key}\``, typeOf(node, required.includes(key)), `${node.description ?? ''}${reference}`];
  });
  return [markdownTable(['key', 'type (default)', 'meaning'], rows), ...within].join('\n\n');
}

/** Returns a link from a page to a table, by the anchor that GitHub generates from its heading. */
function linkTo({ page, name }: Place, from: string): string {
  return `[\`${name}\`](${page === from ? '' : page}#${name.replaceAll(/[^\w-]/g, '')})`;
}

function typeOf(node: SettingsSchema, required: boolean): string {
  const { type = [], enum: values, default: standard } = node;
  // An empty value (null) means the same as a missing key.
  const [accepted, types] = [values?.map(String), [type].flat()].map((all) =>
    all?.filter((name) => name !== 'null'),
  );
  const kind = accepted?.map((value) => `\`${value}\``).join(', ') ?? (types?.join(' or ') || 'any');
  if (required) return `${kind} (required)`;
  return standard === undefined ? kind : `${kind} (\`${String(standard)}\`)`;
}
