import type {
  BuilderModule,
  ObjectSchema,
  SettingsContext,
  SettingsOf,
} from '@nodepool-builder/image-builder';
import { DEFAULT_BUILDER, type Modules } from '../modules.ts';
import { escapePointer } from './diagnostic.ts';
import { type DiskImageSource, entryKey } from './disk-image-schema.ts';
import type { ConfigurationSource } from './schema.ts';
import { isMapping, ownSettings } from './values.ts';

/** A disk image of the file: an entry of `diskimages`, or of the section of its builder. */
export interface DiskImageEntry {
  readonly pointer: string;
  /** JSON pointer of its name: a key of the entry, or the key of the entry in a mapping. */
  readonly namePointer: string;
  readonly source: DiskImageSource;
  /** Undefined for an unknown builder, and for one with a section of its own. */
  readonly module: BuilderModule | undefined;
}

/** All disk images, including abstract ones and those that another one of the same name replaces. */
export function diskImageEntries(source: ConfigurationSource, modules: Modules): readonly DiskImageEntry[] {
  const listed = (source.diskimages ?? []).map((diskimage, index): DiskImageEntry => {
    const module = modules.builders.get(diskimage.builder ?? DEFAULT_BUILDER);
    return {
      pointer: `/diskimages/${index}`,
      namePointer: `/diskimages/${index}/name`,
      source: diskimage,
      module: module?.section === undefined ? module : undefined,
    };
  });
  return [...listed, ...sectionEntries(source, modules)];
}

/** The entries of sections of builders, such as `zuul-images`. */
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
  if (typeof value[entryKey(module)] === 'string') return [entry(`/${key}`, value)];
  return Object.entries(value).map(([name, fields]) => {
    const pointer = `/${key}/${escapePointer(name)}`;
    return { pointer, namePointer: pointer, source: { ...(fields as object), name }, module };
  });
}

/** The configuration around an entry whose settings are read. */
export type Surroundings = Omit<SettingsContext, 'name'>;

/** Values of the module's keys, with defaults and absolute paths. */
export function settingsOf(
  source: DiskImageSource,
  { settings }: BuilderModule,
  { absolute }: Pick<SettingsContext, 'absolute'>,
): SettingsOf<ObjectSchema> {
  return ownSettings<ObjectSchema>(settings, source, absolute);
}

/** Names of the modules' keys with the format `words`. */
export function wordKeys({ builders }: Modules): readonly string[] {
  const keys = [...builders.values()].flatMap(({ settings }) => {
    const { properties }: ObjectSchema = settings;
    return Object.keys(properties).filter((key) => properties[key]?.format === 'words');
  });
  return [...new Set(keys)];
}
