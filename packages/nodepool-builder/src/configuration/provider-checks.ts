import type { Diagnostic, ProviderModule } from '@nodepool-builder/image-builder';
import { below, missingKeys, nameDiagnostics, namesOf } from './checks.ts';
import { imageIdDiagnostics } from './disk-image-checks.ts';
import type { ConfigurationParts } from './parts.ts';
import type { ListedProvider } from './provider.ts';
import { describesDiskImage } from './provider-images.ts';
import type { ProviderImageSource } from './provider-schema.ts';

/** Reports names that are used twice, disk images that are missing or abstract, and more metadata than Nova accepts. */
export function* providerReferenceDiagnostics({
  providers,
  diskimages,
  lineOf,
}: ConfigurationParts): Iterable<Diagnostic> {
  yield* nameDiagnostics(namesOf('/providers', providers), lineOf);
  const lists = new Set(['diskimages', ...diskimages.map((entry) => entry.list)]);
  const diskImages = new Map(diskimages.map(({ name, source }) => [name, source]));
  for (const { pointer: provider, entry } of providers) {
    const list = `${provider}/images`;
    yield* nameDiagnostics(namesOf(list, entry.images), lineOf);
    for (const [position, { diskimage, meta }] of entry.images.entries()) {
      const pointer = `${list}/${position}/diskimage`;
      const found = diskImages.get(diskimage ?? '');
      if (found?.abstract) {
        const reason = `"${diskimage}" is abstract: it is never built`;
        yield { pointer, reason, remedy: 'name a disk image that inherits from it' };
      } else if (diskimage && found === undefined) {
        const reason = `"${diskimage}" is not among ${[...lists].join(' and ')}`;
        const remedy = 'correct it, unless another builder builds that image';
        yield { pointer, severity: 'warning', reason, remedy };
      }
      yield* below(`${list}/${position}/meta`, metadataDiagnostics(meta));
    }
  }
}

/** Limits of metadata in Nova, and in nodepool. */
const MAX_METADATA = { entries: 5, characters: 255 };

function* metadataDiagnostics(meta: Readonly<Record<string, string>>): Iterable<Diagnostic> {
  const { entries, characters } = MAX_METADATA;
  const keys = Object.keys(meta);
  const long = keys.find((key) => key.length > characters || (meta[key] ?? '').length > characters);
  if (keys.length <= entries && long === undefined) return;
  const reason =
    keys.length > entries
      ? `has more than ${entries} entries`
      : `has over ${characters} characters in "${long?.slice(0, 20)}"`;
  yield {
    pointer: '',
    severity: 'warning',
    reason,
    remedy: 'it is sent unchanged, and the cloud may reject it',
  };
}

/** Reports values in `providers` that the schema accepts but a module, a command or a hook cannot use. */
export function* providerDiagnostics({ providers, modules }: ConfigurationParts): Iterable<Diagnostic> {
  for (const provider of providers) {
    const { pointer, name, source, module } = provider;
    yield* below(`${pointer}/name`, optionDiagnostics(name));
    const found = [...moduleDiagnostics(provider)];
    yield* below(pointer, found);
    for (const [position, image] of (source.images ?? []).entries()) {
      const place = `/images/${position}`;
      if (!found.some((one) => one.pointer === `${place}/name`)) {
        yield* describesDiskImage(image, modules)
          ? imageIdDiagnostics(image.name, `${pointer}${place}/name`)
          : below(`${pointer}${place}/name`, optionDiagnostics(image.name));
      }
      yield* below(pointer + place, imageDiagnostics(image, module));
    }
  }
}

function moduleDiagnostics({ source, module, entry }: ListedProvider): Iterable<Diagnostic> {
  const missing = [...missingKeys(module.settings, source, `type: ${module.type}`)];
  return missing.length > 0 ? missing : (module.check?.(entry) ?? []);
}

/**
 * Warns about a name that looks like an option. Only a warning, because the Python builder had no hook with the name as
 * an argument.
 */
function* optionDiagnostics(name: string): Iterable<Diagnostic> {
  if (!name.startsWith('-')) return;
  const reason = 'begins with a "-", so commands and hooks would parse it as an option';
  yield { pointer: '', severity: 'warning', reason, remedy: 'choose a plain name' };
}

function* imageDiagnostics({ diskimage }: ProviderImageSource, module: ProviderModule): Iterable<Diagnostic> {
  if (diskimage && module.images === undefined) {
    const reason = `has no effect: a provider of type ${module.type} does not store images`;
    yield { pointer: '/diskimage', reason, remedy: 'remove the image there', severity: 'warning' };
  }
}
