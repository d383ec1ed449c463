import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Material } from '@nodepool-builder/image-builder';
import type { Build, ImageDocument, ManagerState, StateStore, Upload } from '@nodepool-builder/image-manager';
import {
  type BuildFacts,
  buildFactsOf,
  type ChainLink,
  type ChainReport,
  comparePackages,
  type FoundAttestation,
  type Package,
  type ProvenanceError,
  type TrustedKey,
  unverifiedStatement,
  verifyBundle,
  verifyChain,
} from '@nodepool-builder/provenance';
import type { AttestationSettings } from '../../configuration/attestation.ts';
import { errorLine } from '../../terms/command-error.ts';
import { readTrusted } from '../trusted-keys.ts';
import type { BuildOrigin, MaterialRecord, PackagesRecord, Proof, UploadOrigin } from './origin-record.ts';
import { unpackPackages } from './package-list.ts';

/** Keys for verifying signatures. */
export interface Keys {
  readonly keys: readonly TrustedKey[];
  /** Reason why there are no keys. */
  readonly withoutKeys?: string;
}

/** Sources from which the origin of an image is read. */
export interface OriginSource extends Keys {
  readonly state: ManagerState;
  readonly store: Pick<StateStore, 'attestations' | 'packages'>;
}

/** Maximum number of uploads of one build whose proof is verified. */
const MAX_UPLOADS = 20;

/** Maximum number of earlier builds that are searched for a package list. */
const MAX_EARLIER_BUILDS = 10;

const NO_ATTESTATION = 'its builder returned no attestation';

/** Location of the attestations, for messages. */
const PLACE = 'store of the manager';

/** Reads the trusted keys of a configuration. Without them, the origin is shown, but nothing is proven. */
export async function readKeys(configuration: object): Promise<Keys> {
  const { attestation }: { readonly attestation?: AttestationSettings } = configuration;
  const withoutKeys = 'no trusted keys are configured; set attestation.trusted-keys';
  if (attestation === undefined) return { keys: [], withoutKeys };
  try {
    const keys = await readTrusted(attestation);
    return { keys, ...(keys.length === 0 && { withoutKeys }) };
  } catch (error) {
    return { keys: [], withoutKeys: errorLine(error) };
  }
}

/** Describes where an upload comes from. */
export async function originOfUpload(source: OriginSource, upload: Upload): Promise<UploadOrigin> {
  const attestations = await source.store.attestations(upload.imageId, upload.id);
  return describeUpload(upload, proofOfUpload(upload, attestations, source));
}

/** Describes where a build comes from, and where the proofs of its newest uploads stand. */
export async function originOfBuild(source: OriginSource, imageId: string): Promise<BuildOrigin> {
  const { state, store } = source;
  const build = state.builds.get(imageId);
  const attestations = build === undefined ? [] : await store.attestations(imageId);
  const { proof, facts } = await readBuild(imageId, build?.state, attestations, source);
  const uploads = uploadsWithImages(state, imageId);
  const described: UploadOrigin[] = [];
  for (const upload of uploads.slice(0, MAX_UPLOADS)) {
    described.push(describeUpload(upload, proofOfUpload(upload, attestations, source)));
    await nextTurn(); // lets other requests run
  }
  return {
    'image-id': imageId,
    diskimage: build?.diskimage ?? null,
    proof,
    builder: facts?.builderId ?? null,
    started: facts?.startedAt?.toISOString() ?? null,
    finished: facts?.finishedAt?.toISOString() ?? null,
    materials: (facts?.materials ?? []).map(describeMaterial),
    packages: await packagesOf(source, build),
    uploads: described,
    'more-uploads': uploads.length - described.length,
  };
}

/** Verifies the chain of an upload back to its build. */
function proofOfUpload(
  { id, provider, externalId }: Upload,
  attestations: readonly ImageDocument[],
  { keys, withoutKeys }: Keys,
): Proof {
  if (externalId === undefined) return unproven('the provider has no image of it');
  if (withoutKeys !== undefined) return unproven(withoutKeys);
  const found = attestations.flatMap(({ uploadId = id, text }) => {
    return uploadId === id ? [{ place: PLACE, text }] : [];
  });
  if (found.length === 0) return unproven(NO_ATTESTATION);
  return describeReport(verifyChain({ kind: 'upload', provider, externalId }, found, keys));
}

/** The uploads of a build that have an image in a provider, newest first. */
function uploadsWithImages({ uploads }: ManagerState, imageId: string): readonly Upload[] {
  return [...uploads.values()]
    .filter((upload) => upload.imageId === imageId && upload.externalId !== undefined)
    .filter(({ state }) => state === 'ready' || state === 'deleting')
    .toSorted((one, other) => other.requestedAt - one.requestedAt);
}

/** The finished builds of a disk image before the given one, newest first. */
function earlierBuilds({ builds }: ManagerState, build: Build): readonly Build[] {
  return [...builds.values()]
    .filter(({ diskimage, state }) => diskimage === build.diskimage && FINISHED.has(state))
    .filter(({ requestedAt, id }) => requestedAt < build.requestedAt && id !== build.id)
    .toSorted((one, other) => other.requestedAt - one.requestedAt)
    .slice(0, MAX_EARLIER_BUILDS);
}

const FINISHED: ReadonlySet<Build['state']> = new Set(['ready', 'deleting', 'deleted']);

/** Verifies the attestation of a build. Its facts are shown even if the signature is not verified. */
async function readBuild(
  imageId: string,
  state: Build['state'] | undefined,
  attestations: readonly ImageDocument[],
  { keys, withoutKeys }: Keys,
): Promise<{ readonly proof: Proof; readonly facts?: BuildFacts }> {
  const outcomes: { readonly proof: Proof; readonly facts?: BuildFacts }[] = [];
  for (const { uploadId, text } of attestations) {
    if (uploadId !== undefined) continue;
    const found: FoundAttestation = { place: PLACE, text };
    let facts: BuildFacts | undefined;
    try {
      facts = buildFactsOf(unverifiedStatement(found));
      if (facts?.kind !== 'build') continue;
      const { keyId, keyFile } = verifyBundle(found, keys);
      if (facts.imageId !== imageId) throw new Error(`it is about image ${facts.imageId ?? 'without an id'}`);
      const reason = `built by ${facts.builderId}`;
      outcomes.push({
        proof: { state: 'proven', reason, 'key-id': keyId, 'key-file': keyFile, links: [] },
        facts,
      });
    } catch (error) {
      const isUntrusted = (error as Partial<ProvenanceError>).code === 'key-untrusted';
      const reason = (isUntrusted && withoutKeys) || errorLine(error);
      const proof = { ...unproven(reason), state: isUntrusted ? 'unproven' : 'refuted' } as const;
      outcomes.push({ proof, ...(facts !== undefined && { facts }) });
    }
  }
  const proven = outcomes.find(({ proof }) => proof.state === 'proven');
  return proven ?? outcomes[0] ?? { proof: unproven(withoutDocuments(state, NO_ATTESTATION)) };
}

/** Explains why the store has no document of a build. */
function withoutDocuments(state: Build['state'] | undefined, otherwise: string): string {
  if (state === 'building') return 'the build has not ended';
  return state === 'failed' ? 'the build failed' : otherwise;
}

function unproven(reason: string): Proof {
  return { state: 'unproven', reason, 'key-id': null, 'key-file': null, links: [] };
}

function describeReport({ state, links }: ChainReport): Proof {
  const decisive = links.find((link) => link.state === state) ?? links[0];
  return {
    state,
    reason: decisive?.reason ?? '',
    'key-id': decisive?.keyId ?? null,
    'key-file': decisive?.keyFile ?? null,
    links: links.map(describeLink),
  };
}

/** Formats a link as a record. */
export function describeLink<K extends string>({
  kind,
  subject,
  state,
  reason,
  keyId,
  keyFile,
}: Omit<ChainLink, 'kind'> & { readonly kind: K }) {
  return { kind, subject, state, reason, 'key-id': keyId ?? null, 'key-file': keyFile ?? null };
}

/** @param proof the upload's proof */
function describeUpload(upload: Upload, proof: Proof): UploadOrigin {
  return {
    'upload-id': upload.id,
    'image-id': upload.imageId,
    provider: upload.provider,
    'image-name': upload.imageName,
    'external-id': upload.externalId ?? null,
    proof,
  };
}

function describeMaterial({ name, uri, digest, annotations = {} }: Material): MaterialRecord {
  return {
    name,
    uri: uri ?? null,
    digests: Object.entries(digest).map(([algorithm, value]) => `${algorithm}:${value}`),
    facts: Object.entries(annotations).map(([key, value]) => `${key}: ${value}`),
  };
}

/** Compares the packages of a build with the last earlier build that has a package list. */
async function packagesOf({ state, store }: OriginSource, build: Build | undefined): Promise<PackagesRecord> {
  const none = { count: null, 'compared-with': null, added: [], removed: [], changed: [] };
  if (build === undefined) return { ...none, reason: 'no manager has a record of the build' };
  const own = await store.packages(build.id);
  if (own === undefined) {
    return { ...none, reason: withoutDocuments(build.state, 'its builder returned no package list') };
  }
  const after = await listOf(build.id, own);
  if (typeof after === 'string') return { ...none, reason: after };
  const one = { ...none, count: after.length };
  for (const { id } of earlierBuilds(state, build)) {
    const text = await store.packages(id);
    if (text === undefined) continue;
    const before = await listOf(id, text);
    if (typeof before === 'string') return { ...one, reason: before };
    const { added, removed, changed } = comparePackages(before, after);
    return {
      ...one,
      'compared-with': id,
      reason: null,
      added: added.map(describePackage),
      removed: removed.map(describePackage),
      changed: changed.map((change) => ({
        name: change.after.name,
        architecture: change.after.architecture ?? null,
        before: change.before.version,
        after: change.after.version,
      })),
    };
  }
  return { ...one, reason: 'the store has no package list of an earlier build' };
}

/** Unpacks the package list of a build, or returns the reason why it cannot. */
async function listOf(imageId: string, text: string): Promise<readonly Package[] | string> {
  try {
    return await unpackPackages(text);
  } catch (error) {
    return `the package list of ${imageId} cannot be read: ${errorLine(error)}`;
  }
}

function describePackage({ name, architecture, version }: Package): PackagesRecord['added'][number] {
  return { name, architecture: architecture ?? null, version };
}
