import type {
  BuilderModule,
  BuilderSection,
  ObjectSchema,
  SettingsOf,
} from '@nodepool-builder/image-builder';
import { escapePointer } from '../yaml/diagnostic.ts';
import { ownSettings } from '../yaml/values.ts';
import { isMapping } from '../yaml/yaml-document.ts';
import { type DiskImageSource, entryKey } from './disk-image-schema.ts';
import { DEFAULT_BUILDER, type Modules } from './modules.ts';
import type { ConfigurationSource } from './schema.ts';

/** A disk image of the file: an entry of `diskimages`, or of the section of its builder. */
export interface DiskImageEntry {
  /** `diskimages`, or the key of the section. */
  readonly list: string;
  readonly name: string;
  readonly pointer: string;
  /** JSON pointer of the name, which is a value in the entry, or the key of the entry in a mapping. */
  readonly namePointer: string;
  readonly source: DiskImageSource;
  /** Module of the builder. Undefined if the entry is abstract, or its builder is unknown or has its own section. */
  readonly module: BuilderModule | undefined;
  /** Values of the module's keys, with defaults and absolute paths. */
  readonly values: SettingsOf<ObjectSchema>;
}

/** All disk images, including abstract ones and those that a later entry of the same name replaces. */
export function diskImageEntries(
  source: ConfigurationSource,
  { builders }: Modules,
  absolute: (path: string) => string,
): readonly DiskImageEntry[] {
  const listed = (source.diskimages ?? []).map((diskimage, index) => {
    const module = builders.get(diskimage.builder ?? DEFAULT_BUILDER);
    const pointer = `/diskimages/${index}`;
    return {
      list: 'diskimages',
      name: diskimage.name,
      pointer,
      namePointer: `${pointer}/name`,
      source: diskimage,
      module: module?.entries?.section === undefined ? module : undefined,
    };
  });
  const inSections = [...builders.values()].flatMap((module) =>
    module.entries?.section === undefined ? [] : sectionEntries(module, module.entries.section, source),
  );
  return [...listed, ...inSections].map((entry) => {
    const module = entry.source.abstract ? undefined : entry.module;
    const values = module && ownSettings<ObjectSchema>(module.settings, entry.source, absolute);
    return { ...entry, module, values: values ?? {} };
  });
}

/** The entries of a section, such as `zuul-images`. */
function sectionEntries(
  module: BuilderModule,
  { key: list, defaultName }: BuilderSection,
  source: ConfigurationSource,
): Omit<DiskImageEntry, 'values'>[] {
  const value = source[list];
  const entry = (pointer: string, fields: Readonly<Record<string, unknown>>) => {
    const nameKey = fields.name === undefined ? defaultName : 'name';
    const name = String(fields[nameKey]);
    return { list, name, pointer, namePointer: `${pointer}/${nameKey}`, source: { ...fields, name }, module };
  };
  if (Array.isArray(value)) return value.map((fields, index) => entry(`/${list}/${index}`, fields));
  if (!isMapping(value)) return [];
  if (typeof value[entryKey(module)] === 'string') return [entry(`/${list}`, value)];
  return Object.entries(value).map(([name, fields]) => {
    const pointer = `/${list}/${escapePointer(name)}`;
    return { list, name, pointer, namePointer: pointer, source: { ...(fields as object), name }, module };
  });
}

/** Names of the module keys with the format `words`. */
export function wordKeys({ builders }: Modules): readonly string[] {
  const keys = [...builders.values()].flatMap(({ settings }) => {
    const { properties }: ObjectSchema = settings;
    return Object.keys(properties).filter((key) => properties[key]?.format === 'words');
  });
  return [...new Set(keys)];
}
