import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { FORMAT_NAMES, type Manifest, type ProviderImage } from '@nodepool-builder/image-builder';
import {
  DamagedRecordError,
  IMAGE_MANIFEST,
  imageFileName,
  imageIdError,
  Layout,
  readAttestation,
} from '@nodepool-builder/image-builder/internal';
import type { Build, StateStore, Upload } from '@nodepool-builder/image-manager';
import {
  type ChainLink,
  type FoundAttestation,
  readAttestations,
  type VerifiedSubject,
} from '@nodepool-builder/provenance';
import { isAttestation } from '../attestation/documents.ts';
import type { Configuration } from '../configuration/configuration.ts';
import type { Modules } from '../configuration/modules.ts';
import { withStore } from '../site/state-view.ts';
import { CommandError, errorLine, failing, warn } from '../terms/command-error.ts';
import { type ByteSettings, type HashedFile, hashFiles, storedBytes } from './image-bytes.ts';
import { withProvider } from './job-provider.ts';

/** A link of the chain, or the comparison of a record with it. */
export interface Link extends Omit<ChainLink, 'kind'> {
  readonly kind: ChainLink['kind'] | 'record';
}

/** A record about an image, which has no signature. */
export type ImageRecord = { readonly place: string } & (
  | { readonly kind: 'damaged'; readonly reason: string }
  | { readonly kind: 'manifest'; readonly manifest: Manifest }
  | { readonly kind: 'build'; readonly build: Build }
  | { readonly kind: 'upload'; readonly upload: Upload }
  | {
      readonly kind: 'provider';
      readonly image: ProviderImage;
      /** Property with the SHA-256 of the build's statement. */
      readonly buildDigest: string | undefined;
    }
);

/** An image, and all evidence of its origin. */
export interface Evidence {
  /** `image debian-1`. */
  readonly title: string;
  /** Image-id in the file name; undefined if the name is not an image-id. */
  readonly imageId: string | undefined;
  readonly subject: VerifiedSubject;
  readonly files: readonly HashedFile[];
  readonly attestations: readonly FoundAttestation[];
  readonly records: readonly ImageRecord[];
  /** Links that were refuted while the evidence was collected. */
  readonly links: readonly Link[];
}

/** Settings of {@link collectEvidence}. */
export interface EvidenceSettings extends ByteSettings {
  readonly provider?: string;
  readonly config?: string;
  /** Files or directories with attestations. */
  readonly attestations: readonly string[];
  readonly configuration: Configuration | undefined;
  readonly modules: Modules;
}

/**
 * Finds an image, computes the digests of its files, and collects its attestations and records.
 *
 * @param image image-id, file, or external-id in the provider of the settings
 * @throws CommandError `not-found`; errors of the provider and of files
 */
export async function collectEvidence(image: string, settings: EvidenceSettings): Promise<Evidence> {
  const named = await namedAttestations(settings.attestations);
  const evidence = await find(image, settings);
  const seen = new Set<string>();
  const attestations = [...named, ...evidence.attestations].filter(
    ({ text }) => !seen.has(text) && seen.add(text),
  );
  return { ...evidence, attestations };
}

async function find(image: string, settings: EvidenceSettings): Promise<Evidence> {
  const { provider, configuration } = settings;
  if (provider !== undefined) return await ofUpload(image, provider, settings);
  const path = await realpath(image).catch(() => undefined);
  if (path !== undefined && (await stat(path)).isFile()) return await ofFile(path, settings);
  const error = imageIdError(image);
  if (error !== undefined) {
    throw new CommandError(`${image} does not exist; name an image-id or an image file`, 'not-found');
  }
  if (configuration === undefined) {
    throw new CommandError(
      `file ${image} does not exist, and an image-id needs a configuration file; add -c`,
      'not-found',
    );
  }
  return await ofImage(image, configuration, settings);
}

async function ofImage(
  imageId: string,
  configuration: Configuration,
  { withProgress, signal }: EvidenceSettings,
): Promise<Evidence> {
  const directory = configuration['images-dir'];
  const paths = FORMAT_NAMES.map((format) => ({
    format,
    path: join(directory, imageFileName(imageId, format)),
  }));
  const files = await hashFiles(`image ${imageId}`, paths, withProgress, signal);
  const found = [await localEvidence(directory, imageId), await storedEvidence(configuration, imageId)];
  const attestations = found.flatMap((source) => source.attestations);
  const records = found.flatMap((source) => source.records);
  if (files.length + attestations.length === 0) {
    throw new CommandError(
      `image ${imageId} is neither in ${directory} nor in the store of the manager; run this on the builder that has ` +
        'it, or name its provider and its external-id',
      'not-found',
    );
  }
  const subject = { kind: 'image', imageId, files } as const;
  return { title: `image ${imageId}`, imageId, subject, files, attestations, records, links: [] };
}

async function ofFile(
  path: string,
  { configuration, withProgress, signal }: EvidenceSettings,
): Promise<Evidence> {
  const name = basename(path, extname(path));
  const imageId = imageIdError(name) === undefined ? name : undefined;
  const format = FORMAT_NAMES.find((one) => imageFileName(name, one) === basename(path)) ?? '';
  const files = await hashFiles(basename(path), [{ format, path }], withProgress, signal);
  const [file] = files;
  if (file === undefined) throw new CommandError(`${path} was removed`, 'not-found');
  const found =
    imageId === undefined
      ? []
      : [await localEvidence(dirname(path), imageId), await storedEvidence(configuration, imageId)];
  return {
    title: `file ${path}`,
    imageId,
    subject: { kind: 'file', path, sha256: file.sha256 },
    files,
    attestations: [...found.flatMap((source) => source.attestations), ...(await besideFile(path))],
    records: found.flatMap((source) => source.records),
    links: [],
  };
}

async function ofUpload(externalId: string, name: string, settings: EvidenceSettings): Promise<Evidence> {
  const { modules, config, configuration } = settings;
  const options = { provider: name, ...(config !== undefined && { config }) };
  return await withProvider(options, modules, async ({ provider, signal }) => {
    const image = (await provider.list({ signal })).find((one) => one.externalId === externalId);
    if (image === undefined) {
      throw new CommandError(
        `provider "${name}" has no complete image ${externalId} that nodepool-builder uploaded; image-list lists its images`,
        'not-found',
      );
    }
    const { imageId } = image;
    const candidates = await provider.findImages({}, { known: [externalId], signal });
    const { properties = {} } = candidates.find((one) => one.externalId === externalId) ?? {};
    const kept = (await provider.getAttestations?.(externalId, { signal })) ?? [];
    const local = configuration && (await localEvidence(configuration['images-dir'], imageId));
    const stored = await storedEvidence(configuration, imageId, image);
    const download = await storedBytes(provider, externalId, { ...settings, signal });
    const place = `provider ${name}`;
    return {
      title: `image ${externalId} of provider ${name}`,
      imageId,
      subject: {
        kind: 'upload',
        provider: name,
        externalId,
        ...(download.sha256 !== undefined && { downloaded: download.sha256 }),
      },
      files: [],
      attestations: [
        ...kept
          .filter(isAttestation)
          .map((document) => ({ place: `${place}, ${document.name}`, text: document.text })),
        ...(local?.attestations ?? []),
        ...stored.attestations,
      ],
      records: [
        { kind: 'provider', place, image, buildDigest: properties['attestation-sha256'] },
        ...stored.records,
      ],
      links: download.links,
    };
  });
}

/** Attestations and records of one source. */
interface Found {
  readonly attestations: readonly FoundAttestation[];
  readonly records: readonly ImageRecord[];
}

const NOTHING: Found = { attestations: [], records: [] };

/** Reads the attestations in `<image-id>.d`, and the record of the builder. */
async function localEvidence(directory: string, imageId: string): Promise<Found> {
  const attestations = await readAttestations(directory, imageId);
  const place = new Layout(directory).manifest(imageId);
  try {
    const manifest = await IMAGE_MANIFEST.read(place);
    return { attestations, records: manifest === undefined ? [] : [{ kind: 'manifest', place, manifest }] };
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    return { attestations, records: [{ kind: 'damaged', place, reason: error.message }] };
  }
}

/**
 * Reads the attestations and records of the manager. If the store does not respond, it warns and returns none.
 *
 * @param uploaded the image in a provider whose upload is also wanted
 */
async function storedEvidence(
  configuration: Configuration | undefined,
  imageId: string,
  uploaded?: ProviderImage,
): Promise<Found> {
  if (configuration === undefined) return NOTHING;
  const place = 'store of the manager';
  try {
    const read = async (store: StateStore): Promise<Found> => {
      const documents = await store.attestations(imageId, uploaded?.uploadId);
      const { builds, uploads } = await store.read();
      const build = builds.get(imageId);
      return {
        attestations: documents.map(({ text }) => ({ place, text })),
        records: [
          ...(build === undefined ? [] : [{ kind: 'build', place, build } as const]),
          ...[...uploads.values()]
            .filter(({ externalId }) => uploaded !== undefined && externalId === uploaded.externalId)
            .filter((upload) => upload.imageId === imageId)
            .map((upload) => ({ kind: 'upload', place, upload }) as const),
        ],
      };
    };
    return await withStore(configuration, read, () => NOTHING);
  } catch (error) {
    warn(`ignoring the attestations and records of the manager: ${errorLine(error)}`);
    return NOTHING;
  }
}

/** Attestations next to a file of a directory provider: `<file>.build.sigstore.json`. */
async function besideFile(path: string): Promise<readonly FoundAttestation[]> {
  const prefix = `${basename(path)}.`;
  const names = (await readdir(dirname(path))).filter(
    (name) => name.startsWith(prefix) && name.endsWith(BUNDLE),
  );
  return await readAll(names.map((name) => join(dirname(path), name)));
}

const BUNDLE = '.sigstore.json';

/** Reads the attestations of `--attestations`: a file, a directory of them, or `<image-id>.d`. */
async function namedAttestations(paths: readonly string[]): Promise<readonly FoundAttestation[]> {
  const found: FoundAttestation[] = [];
  for (const path of paths) {
    const unreadable = failing(
      `${path} cannot be read`,
      'name an attestation or a directory of them',
      'not-found',
    );
    const isDirectory = (await stat(path).catch(unreadable)).isDirectory();
    const names = isDirectory ? await readdir(path, { recursive: true }) : [''];
    const bundles = isDirectory ? names.filter((name) => name.endsWith(BUNDLE)) : names;
    if (bundles.length === 0) {
      throw new CommandError(
        `${path} contains no attestation (*${BUNDLE}); name another directory`,
        'not-found',
      );
    }
    found.push(...(await readAll(bundles.toSorted().map((name) => join(path, name)))));
  }
  return found;
}

async function readAll(paths: readonly string[]): Promise<readonly FoundAttestation[]> {
  const found = await Promise.all(
    paths.map(async (path) => ({ place: path, text: await readAttestation(path) })),
  );
  return found.flatMap(({ place, text }) => (text === undefined ? [] : [{ place, text }]));
}
