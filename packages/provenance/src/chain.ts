import { basename } from 'node:path';
import { type BuildFacts, buildFactsOf } from './build-statement.ts';
import { type VerifiedStatement, verifyBundle } from './bundle.ts';
import { ProvenanceError } from './errors.ts';
import type {
  ChainLink,
  FoundAttestation,
  LinkState,
  LocalFile,
  TrustedKey,
  VerifiedSubject,
} from './types.ts';
import { type UploadFacts, uploadFactsOf } from './upload-statement.ts';

/**
 * Result of verifying a subject. It is proven if all links are, except the link of the materials, because a builder may
 * use material without a digest, such as packages of a mirror.
 */
export interface ChainReport {
  readonly links: readonly ChainLink[];
  readonly state: LinkState;
  /** Verified facts of the build, if there are any. */
  readonly build?: BuildFacts;
}

/** Tolerated seconds by which a builder's clock may be ahead of this host's. */
const CLOCK_TOLERANCE = 300;

/** A verified statement. */
interface Attested<Facts> {
  readonly facts: Facts;
  readonly verified: VerifiedStatement;
  readonly place: string;
}

/** A verified statement of a build or a conversion. */
type AttestedBuild = Attested<BuildFacts>;

/**
 * Follows the chain from a subject back to its build: upload, download, file, conversion, build, materials.
 *
 * An attestation that was changed is always reported. An attestation by an untrusted key counts only where the chain
 * lacks a link, because an image may have attestations of several sites.
 *
 * @param now time of the verification
 */
export function verifyChain(
  subject: VerifiedSubject,
  attestations: readonly FoundAttestation[],
  keys: readonly TrustedKey[],
  now: Date = new Date(),
): ChainReport {
  const chain = new Chain(attestations, keys, now);
  chain.walk(subject);
  return chain.report();
}

function finishTime({ facts }: AttestedBuild): number {
  return facts.finishedAt?.getTime() ?? 0;
}

function uploadTime({ facts }: Attested<UploadFacts>): number {
  return Date.parse(facts['uploaded-on']);
}

/** Returns the kind of an attestation that cannot be read, by its file name. */
function kindOf(place: string): ChainLink['kind'] {
  const name = basename(place);
  if (name.startsWith('upload-')) return 'upload';
  return name.startsWith('convert-') ? 'conversion' : 'build';
}

class Chain {
  readonly #now: Date;
  /** Builds and conversions, the newest last. */
  readonly #builds: AttestedBuild[] = [];
  readonly #uploads: Attested<UploadFacts>[] = [];
  /** Messages about attestations whose key is not trusted. */
  readonly #untrusted: string[] = [];
  readonly #links: ChainLink[] = [];
  /** Builds whose link has been added. */
  readonly #reported = new Set<AttestedBuild>();
  #build: AttestedBuild | undefined;

  constructor(attestations: readonly FoundAttestation[], keys: readonly TrustedKey[], now: Date) {
    this.#now = now;
    for (const found of attestations) this.#read(found, keys);
    this.#builds.sort((one, other) => finishTime(one) - finishTime(other));
    this.#uploads.sort((one, other) => uploadTime(one) - uploadTime(other));
  }

  /** Reads an attestation. Reports one that was changed or damaged. */
  #read(found: FoundAttestation, keys: readonly TrustedKey[]): void {
    const { place } = found;
    try {
      const verified = verifyBundle(found, keys);
      const build = buildFactsOf(verified.statement);
      const upload = uploadFactsOf(verified.statement);
      if (build !== undefined) this.#builds.push({ facts: build, verified, place });
      if (upload !== undefined) this.#uploads.push({ facts: upload, verified, place });
    } catch (error) {
      if (!(error instanceof ProvenanceError)) throw error;
      const { code, message: reason } = error;
      if (code === 'key-untrusted') this.#untrusted.push(reason);
      else this.#links.push({ kind: kindOf(place), subject: place, state: 'refuted', reason, place });
    }
  }

  walk(subject: VerifiedSubject): void {
    switch (subject.kind) {
      case 'upload':
        this.#walkUpload(subject);
        break;
      case 'file':
        this.#walkNamedFile(subject);
        break;
      case 'image':
        if (subject.files.length === 0) {
          this.#add('file', subject.imageId, 'unproven', 'the image has no file on this host');
        }
        for (const { path, sha256 } of subject.files) {
          this.#walkOrigin(basename(path), sha256, subject.imageId, path);
        }
    }
  }

  report(): ChainReport {
    for (const build of this.#reported) this.#addMaterials(build);
    const links = this.#links;
    const counted = links.filter(({ kind }) => kind !== 'materials');
    const isProven = counted.every(({ state }) => state === 'proven');
    const isRefuted = counted.some(({ state }) => state === 'refuted');
    const build = this.#build?.facts;
    return {
      links,
      state: isRefuted ? 'refuted' : isProven ? 'proven' : 'unproven',
      ...(build !== undefined && { build }),
    };
  }

  #walkUpload({
    provider,
    externalId,
    downloaded,
  }: Omit<VerifiedSubject & { readonly kind: 'upload' }, 'kind'>): void {
    const name = `image ${externalId} of provider ${provider}`;
    const upload = this.#uploads.findLast(
      ({ facts }) => facts.provider === provider && facts['external-id'] === externalId,
    );
    if (upload === undefined) {
      this.#add('upload', name, 'unproven', this.#missing(`the upload of ${name} is not attested`));
      return;
    }
    const { facts } = upload;
    const contradiction = contradictionOf(facts);
    const digests = Object.entries(facts['reported-digests']).map(([type, digest]) => `${type} ${digest}`);
    const reported = digests.length === 0 ? 'no digest' : digests.join(', ');
    const done = `${facts.fileName} was uploaded on ${facts['uploaded-on']}`;
    const reason = contradiction ?? `${done} as ${facts['image-name']}; the provider reported ${reported}`;
    this.#add('upload', name, contradiction === undefined ? 'proven' : 'refuted', reason, upload);
    if (downloaded !== undefined) {
      const isSame = downloaded === facts.sha256;
      const other = `other bytes than ${facts.fileName} had${facts.converted ? ', which it converted' : ''}`;
      const bytes = isSame ? 'the uploaded bytes' : other;
      const message = `the provider has ${bytes}: their sha256 is ${downloaded}`;
      const ifOther = facts.converted ? 'unproven' : 'refuted';
      this.#add('download', name, isSame ? 'proven' : ifOther, message);
    }
    const build = this.#walkOrigin(facts.fileName, facts.sha256, facts['image-id']);
    const { 'build-digest': digest } = facts;
    if (build !== undefined && digest !== undefined && digest !== build.verified.digest) {
      const message = `the upload names another attestation of the build, sha256 ${digest}`;
      this.#add('upload', name, 'refuted', message, upload);
    }
  }

  /** Follows the chain from a file, which may have a name that a provider gave it. */
  #walkNamedFile({ path, sha256 }: Pick<LocalFile, 'path' | 'sha256'>): void {
    const name = basename(path);
    const upload = this.#uploads.findLast(
      ({ facts }) => facts['external-id'] === name && facts.sha256 === sha256,
    );
    if (upload === undefined || this.#originOf(name, sha256) !== undefined) {
      this.#walkOrigin(name, sha256, undefined, path);
    } else this.#walkUpload({ provider: upload.facts.provider, externalId: name });
  }

  /** Follows the chain from a file to its build, and returns the build. */
  #walkOrigin(name: string, sha256: string, imageId?: string, path = name): AttestedBuild | undefined {
    const origin = this.#originOf(name, sha256, imageId);
    if (origin === undefined) {
      this.#addUnknown(name, sha256, path);
      return undefined;
    }
    const isConversion = origin.facts.kind === 'conversion';
    const made = isConversion ? 'a conversion' : 'a build';
    this.#add('file', path, 'proven', `${made} made it: its sha256 is ${sha256}`, origin);
    if (!isConversion) return this.#addBuild(origin);
    return this.#walkConversion(origin, name, imageId);
  }

  #walkConversion(conversion: AttestedBuild, name: string, imageId?: string): AttestedBuild | undefined {
    const { facts } = conversion;
    const [source] = facts.materials;
    const sourceName = source?.name ?? 'an unknown file';
    const digest = source?.digest.sha256 ?? '';
    const build = this.#buildOf(sourceName, digest, imageId ?? facts.imageId);
    const subject = `${name} from ${sourceName}`;
    if (build === undefined) {
      const message = `no attestation of a build covers ${sourceName}, sha256 ${digest}`;
      this.#add('conversion', subject, 'unproven', this.#missing(message), conversion);
      return undefined;
    }
    this.#add('conversion', subject, 'proven', `${facts.builderId} converted it`, conversion);
    return this.#addBuild(build);
  }

  #addBuild(build: AttestedBuild): AttestedBuild {
    this.#build ??= build;
    if (this.#reported.has(build)) return build;
    this.#reported.add(build);
    const { builderId, imageId, imageName, finishedAt } = build.facts;
    const subject = [imageId, imageName && `(${imageName})`].filter(Boolean).join(' ') || builderId;
    const until = finishedAt?.toISOString();
    if (finishedAt !== undefined && finishedAt.getTime() > this.#now.getTime() + CLOCK_TOLERANCE * 1000) {
      const remedy = 'correct the clock of that host or of this one';
      this.#add('build', subject, 'refuted', `it finished in the future, at ${until}; ${remedy}`, build);
    } else {
      this.#add('build', subject, 'proven', `${builderId} finished it${until ? ` at ${until}` : ''}`, build);
    }
    return build;
  }

  #addUnknown(name: string, sha256: string, path: string): void {
    const subjects = [
      ...this.#builds.flatMap(({ facts }) => facts.subjects),
      ...this.#uploads.map(({ facts }) => ({ name: facts.fileName, sha256: facts.sha256 })),
    ];
    const [attested] = subjects.filter((subject) => subject.name === name);
    const [original] = subjects.filter((subject) => subject.sha256 === sha256);
    if (original !== undefined && original.name !== name) {
      const remedy = attested === undefined ? 'give the file that name' : 'restore the file of that name';
      const message = `its bytes are those of ${original.name}; ${remedy}`;
      this.#add('file', path, 'refuted', message);
    } else if (original === undefined && attested !== undefined) {
      const message = `its sha256 is ${sha256}, but its attestation has ${attested.sha256}: it was changed`;
      this.#add('file', path, 'refuted', message);
    } else {
      // An upload may cover these bytes, while no attestation covers their origin.
      const names = [...new Set(subjects.map((subject) => subject.name))];
      const rest = names.length === 0 ? '' : `; the existing ones cover ${names.join(', ')}`;
      const message = `no attestation of a build or conversion covers this file, sha256 ${sha256}${rest}`;
      this.#add('file', path, 'unproven', this.#missing(message));
    }
  }

  /** Finds the build or conversion that made a file. A build takes precedence over a conversion. */
  #originOf(name: string, sha256: string, imageId?: string): AttestedBuild | undefined {
    return this.#buildOf(name, sha256, imageId) ?? this.#builds.findLast(makes(name, sha256, imageId));
  }

  #buildOf(name: string, sha256: string, imageId?: string): AttestedBuild | undefined {
    const isOrigin = makes(name, sha256, imageId);
    return this.#builds.findLast((build) => build.facts.kind === 'build' && isOrigin(build));
  }

  #addMaterials(build: AttestedBuild): void {
    const { materials, imageId, builderId } = build.facts;
    const loose = materials.filter(({ digest }) => Object.keys(digest).length === 0).map(({ name }) => name);
    const count = `${materials.length} ${materials.length === 1 ? 'material' : 'materials'}`;
    const without = loose.length === 0 ? '' : `; without a digest: ${loose.join(', ')}`;
    const state = materials.length > 0 && loose.length === 0 ? 'proven' : 'unproven';
    const reason = materials.length === 0 ? 'the builder reported no material' : count + without;
    this.#add('materials', imageId ?? builderId, state, reason, build);
  }

  /** Formats a reason, with the attestations by untrusted keys, one of which may be the missing one. */
  #missing(reason: string): string {
    return [reason, ...this.#untrusted].join('; ');
  }

  #add(
    kind: ChainLink['kind'],
    subject: string,
    state: LinkState,
    reason: string,
    source?: Attested<unknown>,
  ): void {
    const link = { kind, subject, state, reason };
    if (source === undefined) this.#links.push(link);
    else {
      const { keyId, keyFile } = source.verified;
      this.#links.push({ ...link, place: source.place, keyId, keyFile });
    }
  }
}

/**
 * Returns whether a build has a file of this name among its subjects. A statement of other software has no image-id.
 */
function makes(name: string, sha256: string, imageId: string | undefined): (build: AttestedBuild) => boolean {
  return ({ facts }) =>
    (imageId === undefined || facts.imageId === undefined || facts.imageId === imageId) &&
    facts.subjects.some((subject) => subject.name === name && subject.sha256 === sha256);
}

/** Returns the reason why the digest that a provider reported contradicts the upload. */
function contradictionOf({
  'reported-digests': digests,
  converted,
  sha256,
  fileName,
}: UploadFacts): string | undefined {
  const reported = digests.sha256?.toLowerCase();
  if (reported === undefined || reported === sha256 || converted) return undefined;
  return `the provider reported the sha256 ${reported}, but ${fileName} had ${sha256}`;
}
