import type { Modules } from '../modules.ts';
import { sectionEntries } from './disk-images.ts';
import type { Fault } from './fault.ts';
import { toFault } from './finding.ts';
import { DATABASE_URL } from './normalise.ts';
import { toText } from './scalar.ts';
import { type ConfigurationSource, lastOfEachName } from './source.ts';
import { validationFault } from './validation.ts';
import type { YamlDocument } from './yaml-document.ts';

/** The longest function name that a Gearman library takes, less the prefix `image-build:`. */
const MAX_NAME_BYTES = 512 - 'image-build:'.length;

/** Whether a name can be part of the name of a Gearman function. */
export function isFunctionSubject(name: string): boolean {
  return !/\p{Cc}/u.test(name) && Buffer.byteLength(name) <= MAX_NAME_BYTES;
}

interface NamePlace {
  /** Where the name stands. */
  readonly pointer: string;
  readonly name: string;
}

function placesOf(list: string, entries: readonly { readonly name: string }[]): readonly NamePlace[] {
  return entries.map(({ name }, index) => ({ pointer: `${list}/${index}/name`, name }));
}

/** A URL of any scheme, even misspelt: text with a colon that does not begin like a path. */
const URL_LIKE = /^[^./].*:/;

/** How much metadata Nova takes, and nodepool with it. */
const MAX_METADATA = { entries: 5, characters: 255 };

function largeMetadata(meta: Readonly<Record<string, unknown>>): string | undefined {
  const { entries, characters } = MAX_METADATA;
  const keys = Object.keys(meta);
  if (keys.length > entries) return `has more than ${entries} entries`;
  const long = keys.find((key) => key.length > characters || toText(meta[key]).length > characters);
  return long === undefined ? undefined : `has over ${characters} characters in "${long.slice(0, 20)}"`;
}

/**
 * What the schema leaves open: duplicate names, names that Gearman cannot carry, entries that do not exist,
 * validations that cannot be carried out.
 */
export function referenceFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  modules: Modules,
): readonly Fault[] {
  const { builders } = modules;
  const at = (pointer: string, severity: Fault['severity'], reason: string, remedy: string): Fault =>
    toFault(document, { pointer, severity, reason, remedy });

  const nameFaults = (places: readonly NamePlace[]): Fault[] =>
    places.flatMap(({ name, pointer }) => {
      const first = places.find((place) => place.name === name);
      if (first !== undefined && first.pointer !== pointer) {
        const { line } = document.positionOf(first.pointer);
        const reason = `"${name}" is there already, on line ${line}`;
        return [at(pointer, 'warning', reason, 'this one counts; rename or remove one of the two')];
      }
      if (!isFunctionSubject(name)) {
        const reason = `holds a control character or is longer than ${MAX_NAME_BYTES} bytes`;
        return [at(pointer, 'error', reason, 'choose a plain name')];
      }
      return [];
    });

  const diskimages = source.diskimages ?? [];
  const providers = source.providers ?? [];
  const sections = Map.groupBy(sectionEntries(source, modules), ({ module }) => module?.section?.key ?? '');
  const sectionImages = [...sections.values()].flat();
  const abstract = new Set(
    lastOfEachName(diskimages)
      .filter((diskimage) => diskimage.abstract)
      .map(({ name }) => name),
  );
  const known = new Set(
    [...diskimages, ...sectionImages.map((entry) => entry.source)].map(({ name }) => name),
  );

  const unknownBuilders = diskimages.flatMap(({ builder }, index) => {
    const pointer = `/diskimages/${index}/builder`;
    if (builder === undefined) return [];
    const section = builders.get(builder)?.section;
    if (section !== undefined) {
      const reason = `"${builder}" builds the images of ${section.key} only`;
      return [at(pointer, 'error', reason, `make the image one of ${section.key}`)];
    }
    if (builders.has(builder)) return [];
    const types = [...builders.values()].filter((module) => module.section === undefined);
    const remedy = `use one of ${types.map(({ type }) => type).join(', ')}`;
    return [at(pointer, 'error', `"${builder}" is not there`, remedy)];
  });

  const validations = [
    ...diskimages.map((entry, index) => ({ pointer: `/diskimages/${index}`, source: entry })),
    ...sectionImages,
  ].flatMap(({ pointer: place, source: { validate } }) => {
    const fault = validate && validationFault(validate);
    if (fault === undefined) return [];
    const pointer = `${place}/validate${fault.key}`;
    return [at(pointer, 'error', fault.reason, fault.remedy)];
  });

  const providerImages = providers.flatMap(({ images }, provider) => {
    const list = `/providers/${provider}/images`;
    const missing = (images ?? []).flatMap(({ diskimage }, index) => {
      if (!diskimage) return [];
      const pointer = `${list}/${index}/diskimage`;
      if (abstract.has(diskimage)) {
        const reason = `"${diskimage}" is abstract: it is never built`;
        return [at(pointer, 'error', reason, 'name a disk image that inherits from it')];
      }
      if (known.has(diskimage)) return [];
      const reason = `"${diskimage}" is not among ${['diskimages', ...sections.keys()].join(' and ')}`;
      return [at(pointer, 'warning', reason, 'correct it, unless another builder makes that image')];
    });
    const large = (images ?? []).flatMap(({ meta }, index) => {
      const pointer = `${list}/${index}/meta`;
      const reason = largeMetadata(meta ?? {});
      return reason === undefined
        ? []
        : [at(pointer, 'warning', reason, 'it is sent as it is, and the cloud may refuse it')];
    });
    return [...nameFaults(placesOf(list, images ?? [])), ...missing, ...large];
  });

  const listed = new Set(diskimages.map(({ name }) => name));
  const sharedNames = sectionImages.flatMap(({ namePointer, source: { name } }) => {
    const reason = `"${name}" is the name of one of diskimages, too`;
    return listed.has(name) ? [at(namePointer, 'error', reason, 'rename or remove one of the two')] : [];
  });

  const { store = '' } = source.manager ?? {};
  const unknownStore = URL_LIKE.test(store) && !DATABASE_URL.test(store);
  // The value stays out of the message: it may hold a password.
  const storeFaults = unknownStore
    ? [
        at(
          '/manager/store',
          'error',
          'is a URL, but not of a PostgreSQL database',
          'write postgresql://USER@HOST/DATABASE, or the path of a file, which begins with ./ if it has a colon',
        ),
      ]
    : [];

  return [
    ...nameFaults(placesOf('/diskimages', diskimages)),
    ...[...sections.values()].flatMap((entries) =>
      nameFaults(entries.map(({ namePointer: pointer, source: { name } }) => ({ pointer, name }))),
    ),
    ...sharedNames,
    ...unknownBuilders,
    ...validations,
    ...nameFaults(placesOf('/providers', providers)),
    ...storeFaults,
    ...providerImages,
  ];
}
