import type {
  BuilderModule,
  Diagnostic,
  ObjectSchema,
  SettingsContext,
} from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import { DEFAULT_BUILDER, type Modules } from '../modules.ts';
import type { Finding } from './finding.ts';
import { isMapping } from './scalar.ts';
import type { ConfigurationSource, DiskImageSource } from './source.ts';
import { escapePointer } from './yaml-document.ts';

/** A disk image as it stands in the file: an entry of `diskimages`, or of the section of its builder. */
export interface DiskImageEntry {
  readonly pointer: string;
  /** Place of its name: a key of the entry, or the key of the entry in a mapping. */
  readonly namePointer: string;
  readonly source: DiskImageSource;
  /** Undefined for an unknown builder, and for one with a section of its own. */
  readonly module: BuilderModule | undefined;
}

/** All disk images, including abstract ones and those that another one of the same name replaces. */
export function diskImageEntries(source: ConfigurationSource, modules: Modules): readonly DiskImageEntry[] {
  return [...listedEntries(source, modules), ...sectionEntries(source, modules)];
}

/** The entries of `diskimages`. */
function listedEntries({ diskimages }: ConfigurationSource, { builders }: Modules): DiskImageEntry[] {
  return (diskimages ?? []).map((diskimage, index) => {
    const module = builders.get(diskimage.builder ?? DEFAULT_BUILDER);
    return {
      pointer: `/diskimages/${index}`,
      namePointer: `/diskimages/${index}/name`,
      source: diskimage,
      module: module?.section === undefined ? module : undefined,
    };
  });
}

/** The entries of the sections that builders have of their own, such as `zuul-images`. */
export function sectionEntries(source: ConfigurationSource, { builders }: Modules): DiskImageEntry[] {
  return [...builders.values()].flatMap((module) => entriesOf(module, source));
}

function entriesOf(module: BuilderModule, source: ConfigurationSource): DiskImageEntry[] {
  if (module.section === undefined) return [];
  const { key, defaultName } = module.section;
  const value = source[key];
  const entry = (pointer: string, fields: Readonly<Record<string, unknown>>): DiskImageEntry => {
    const nameKey = fields.name === undefined ? defaultName : 'name';
    const named = { ...fields, name: String(fields[nameKey]) };
    return { pointer, namePointer: `${pointer}/${nameKey}`, source: named, module };
  };
  if (Array.isArray(value)) return value.map((fields, index) => entry(`/${key}/${index}`, fields));
  if (!isMapping(value)) return [];
  if (isSingleEntry(module, value)) return [entry(`/${key}`, value)];
  return Object.entries(value).map(([name, fields]) => {
    const pointer = `/${key}/${escapePointer(name)}`;
    return { pointer, namePointer: pointer, source: { ...(fields as object), name }, module };
  });
}

/** The key that tells a single entry from a mapping of names to entries: it holds text. */
export function entryKey({ settings }: BuilderModule): string {
  const { required: [key] = [] }: ObjectSchema = settings;
  if (key === undefined) throw new TypeError('a builder with a section has no required key');
  return key;
}

function isSingleEntry(module: BuilderModule, value: Readonly<Record<string, unknown>>): boolean {
  return typeof value[entryKey(module)] === 'string';
}

/** Modules of providers and other surroundings of disk images. */
export type Surroundings = Omit<SettingsContext, 'name'>;

/** Problems that the schema cannot express: missing and meaningless blocks, and those that the module finds. */
export function diskImageFindings(
  { pointer, namePointer, source, module }: DiskImageEntry,
  { builders }: Modules,
  surroundings: Surroundings,
): readonly Finding[] {
  if (module === undefined || source.abstract) return [];
  if (module.type === DEFAULT_BUILDER) {
    for (const { type, settings } of builders.values()) {
      const key = blocksOf(settings).find((name) => source[name] !== undefined);
      if (key !== undefined && !(key in module.settings.properties)) {
        const remedy = `write "builder: ${type}" beside it, or remove it`;
        return [
          { pointer: `${pointer}/${key}`, reason: `means nothing to the builder ${module.type}`, remedy },
        ];
      }
    }
  }
  const missing = blocksOf(module.settings).find((key) => source[key] === undefined);
  if (missing !== undefined) {
    const reason = `lacks the key "${missing}", which builder: ${module.type} needs`;
    const { properties }: ObjectSchema = module.settings;
    return [{ pointer, reason, remedy: properties[missing]?.$comment ?? `add "${missing}: …"` }];
  }
  const context = { ...surroundings, name: source.name };
  const diagnostics: Iterable<Diagnostic> =
    module.check?.(settingsOf(source, module, context), context) ?? [];
  return [...diagnostics].map((diagnostic) => ({
    ...diagnostic,
    pointer: diagnostic.pointer === '/name' ? namePointer : pointer + diagnostic.pointer,
  }));
}

function blocksOf({ required = [] }: ObjectSchema): readonly string[] {
  return required;
}

/** Values of the module's keys, with defaults and absolute paths. */
export function settingsOf(
  source: DiskImageSource,
  { settings }: BuilderModule,
  { absolute }: Pick<SettingsContext, 'absolute'>,
): ReturnType<typeof readSettings<ObjectSchema>> {
  const { properties }: ObjectSchema = settings;
  const own = Object.entries(source).filter(([key]) => Object.hasOwn(properties, key));
  return readSettings<ObjectSchema>(settings, Object.fromEntries(own), absolute);
}

/** Names of the modules' keys with a format, such as `words`. */
export function keysWithFormat({ builders }: Modules, format: string): readonly string[] {
  const keys = [...builders.values()].flatMap(({ settings }) => {
    const { properties }: ObjectSchema = settings;
    return Object.entries(properties).filter(([, node]) => node.format === format);
  });
  return [...new Set(keys.map(([key]) => key))];
}
