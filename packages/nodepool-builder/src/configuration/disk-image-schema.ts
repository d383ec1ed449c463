import {
  type BuilderModule,
  type BuilderSection,
  FORMAT_NAMES,
  type ObjectSchema,
  type SettingsOf,
  type SettingsSchema,
} from '@nodepool-builder/image-builder';
import { BUILD_TIMEOUT } from '@nodepool-builder/image-builder/internal';
import { NAME, TEXT } from '../yaml/schema-node.ts';
import { DEFAULT_BUILDER, type Modules } from './modules.ts';
import { unreadKeys } from './unread-keys.ts';
import { VALIDATION_SCHEMA } from './validation.ts';

/** Keys of every disk image, in all sections. */
const COMMON = {
  formats: {
    type: ['array', 'null'],
    items: { enum: FORMAT_NAMES },
    description: "Formats to build, in addition to those that the image's providers need.",
  },
  pause: {
    type: 'boolean',
    default: false,
    description:
      'The builder does not offer the disk image; its jobs wait at the job server, or go to another builder. For ' +
      'the manager, `image-unpause` overrides this key.',
  },
  'build-timeout': {
    type: 'number',
    minimum: 1,
    description: `Time limit of a build in seconds. Default: ${BUILD_TIMEOUT} (eight hours) for imports from Zuul and builds that the manager requests; no limit for other clients, as in nodepool 0.3.`,
  },
  validate: VALIDATION_SCHEMA,
  keep: {
    type: 'integer',
    minimum: 1,
    default: 2,
    description: 'Number of good images that the manager keeps, on disk and in each provider.',
  },
} as const satisfies Record<string, SettingsSchema>;

/** Keys of entries of `diskimages`, before those of the modules. */
const FIRST = {
  name: { ...NAME, description: 'Name of the disk image, offered to Gearman as `image-build:<name>`.' },
  parent: {
    type: ['string', 'null'],
    format: 'text',
    description:
      "Disk image to inherit from. Its elements come first, the entry's `env-vars` are added to the parent's, and " +
      'every other value applies unless the entry sets it.',
  },
  abstract: {
    type: 'boolean',
    default: false,
    description: 'Whether the disk image only serves as a `parent`, and is neither built nor uploaded.',
  },
  builder: TEXT,
} as const satisfies Record<string, SettingsSchema>;

/** Keys of entries of `diskimages`, after those of the modules. */
const LAST = {
  release: {
    type: ['string', 'number', 'boolean', 'null'],
    description: 'Value of `DIB_RELEASE`. A number becomes text, as Python writes it.',
  },
  'env-vars': {
    description:
      "Variables added to the build's environment. Values are strings; anything except a mapping is ignored.",
  },
  ...COMMON,
  options: { type: 'object', description: 'Settings for your own builder.' },
  'rebuild-age': {
    type: 'number',
    exclusiveMinimum: 0,
    description:
      'Age in seconds at which the manager rebuilds the image. Default: 86400, unless a cron expression applies.',
  },
  'rebuild-cron': {
    type: 'string',
    description: 'Times at which the manager rebuilds the image, as a cron expression in local time.',
  },
} as const satisfies Record<string, SettingsSchema>;

type Keys = SettingsOf<{ readonly type: 'object'; readonly properties: typeof FIRST & typeof LAST }>;

/** A valid disk image in the file, with the keys of its builder. */
export type DiskImageSource = Partial<Keys> & { readonly name: string; readonly [key: string]: unknown };

/** An entry of `diskimages`, with the keys of all builders. */
export function diskImageSchema({ builders }: Modules): SettingsSchema {
  const modules = [...builders.values()].filter(({ entries }) => entries?.section === undefined);
  const described = modules.flatMap(({ type, settings: { description } }: BuilderModule<ObjectSchema>) =>
    description === undefined ? [] : [`\`${type}\` (${description})`],
  );
  return {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      ...FIRST,
      builder: {
        ...TEXT,
        default: DEFAULT_BUILDER,
        description: `Builder: ${described.join(', ')}, or a builder of your own program.`,
      },
      ...Object.assign({}, ...modules.map(({ settings }) => settings.properties)),
      ...LAST,
      ...unreadKeys('diskimages'),
    },
  };
}

/** The sections of builders: a list of entries, a mapping of names to entries, or a single entry. */
export function sectionSchemas({ builders }: Modules): Record<string, SettingsSchema> {
  return Object.fromEntries(
    [...builders.values()].flatMap((module) => {
      const section = module.entries?.section;
      return section === undefined ? [] : [[section.key, sectionSchema(module, section)]];
    }),
  );
}

function sectionSchema(module: BuilderModule, { description, defaultName }: BuilderSection): SettingsSchema {
  const { required = [], properties }: ObjectSchema = module.settings;
  const name = {
    ...NAME,
    description: `Offered to Gearman as \`image-build:<name>\`. Default: the value of \`${defaultName}\`.`,
  };
  const unnamed: SettingsSchema = {
    type: 'object',
    required,
    additionalProperties: false,
    properties: { ...COMMON, ...properties },
  };
  const entry: SettingsSchema = { ...unnamed, properties: { name, ...unnamed.properties } };
  const key = entryKey(module);
  const isSingle = { type: 'object', required: [key], properties: { [key]: { type: 'string' } } };
  return {
    type: ['array', 'object', 'null'],
    description,
    items: entry,
    allOf: [
      { if: { not: isSingle }, else: entry },
      { if: isSingle, else: { additionalProperties: unnamed } },
    ],
  };
}

/** The key whose text value distinguishes a single entry from a mapping of names to entries. */
export function entryKey({ settings }: BuilderModule): string {
  const { required: [key] = [] }: ObjectSchema = settings;
  if (key === undefined) throw new TypeError('a builder with a section has no required key');
  return key;
}
