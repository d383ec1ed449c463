import { ImageError, type ImageKey, type Logger, type UploadRequest } from '@nodepool-builder/image-builder';
import { type DatedImage, Mutex, newestBuildFirst } from '@nodepool-builder/image-builder/internal';
import { digestsBelow, latestTag, type OciImage, readImage, tagOf } from './image-manifest.ts';
import type { OciEntry } from './oci-settings.ts';
import type { Registry, StoredManifest } from './registry.ts';
import { DeletionForbiddenError } from './registry-error.ts';

/** Max concurrent manifest reads. */
const READS = 8;

/** Max consecutive updates of the tag `latest`. Only a registry that serves cached responses needs several. */
const ROUNDS = 10;

/** Properties of an image that determine the latest build. */
type Build = Pick<OciImage, 'tag' | 'imageName' | 'imageId' | 'builtAt'> & { readonly digest: string };

interface TaggedManifest {
  readonly tag: string;
  readonly manifest: StoredManifest;
}

/**
 * Returns the digests of the untagged manifests that unfinished uploads have pushed.
 *
 * @param without id of an upload that is ignored
 */
type PushedManifests = (without?: string) => Promise<readonly string[]>;

/** Images of one provider in its repository. Finds and removes images, and sets the tags `latest`. */
export class RegistryImages {
  readonly #provider: string;
  readonly #repository: string;
  readonly #registry: Registry;
  readonly #logger: Logger;
  readonly #pushed: PushedManifests;
  /** Serializes updates of `latest`, so that it points to the newer build when two uploads end together. */
  readonly #latest = new Mutex();
  /** Builds by tag, as last read. A build is read again before it becomes `latest`. */
  readonly #builds = new Map<string, Build>();

  constructor({ name, repository }: OciEntry, registry: Registry, logger: Logger, pushed: PushedManifests) {
    this.#provider = name;
    this.#repository = repository;
    this.#registry = registry;
    this.#logger = logger;
    this.#pushed = pushed;
  }

  /** Returns the external id of the image with a tag. */
  externalId(tag: string): string {
    return `${this.#repository}:${tag}`;
  }

  /** Lists all images, with one request per tag. */
  async all(signal: AbortSignal): Promise<OciImage[]> {
    const tagged = await this.#read(await this.#registry.tags(signal), signal);
    return tagged.flatMap((each) => this.#note(each) ?? []);
  }

  /** Returns the image with a tag. Undefined if there is none, or if the tag is foreign. */
  async at(tag: string, signal: AbortSignal): Promise<OciImage | undefined> {
    const manifest = await this.#registry.manifest(tag, signal);
    return manifest && this.#note({ tag, manifest });
  }

  /**
   * Refuses to replace a foreign tag, or the tag of another image: image `c` of `a-b` and image `b-c` of `a` have the
   * same tag.
   *
   * @returns the image with the tag
   * @throws ImageError `provider-refused`
   */
  async refuseForeign(request: UploadRequest, signal: AbortSignal): Promise<OciImage | undefined> {
    const { imageId, imageName } = request;
    const [tag, pointer] = [tagOf(request), latestTag(imageName)];
    const latest = await this.#registry.manifest(pointer, signal);
    if (latest !== undefined && !this.#isPointer(imageName, latest)) throw this.#taken(pointer);
    const manifest = await this.#registry.manifest(tag, signal);
    if (manifest === undefined) return undefined;
    const image = readImage(this.#provider, tag, manifest);
    if (image === undefined) throw this.#taken(tag);
    if (image.imageId === imageId && image.imageName === imageName) return image;
    throw new ImageError(
      'provider-refused',
      `${this.externalId(tag)} already is image ${image.imageId} of ${image.imageName}; delete that image or use another image-id`,
    );
  }

  #taken(tag: string): ImageError {
    const reason = 'was not pushed by this provider, and remains unchanged';
    return new ImageError('provider-refused', `${this.externalId(tag)} ${reason}; remove the tag manually`);
  }

  /** Pushes the manifest of an image, which refers to its blobs. */
  async put(tag: string, { type, text }: Omit<StoredManifest, 'digest'>, signal: AbortSignal): Promise<void> {
    await this.#registry.putManifest(tag, type, text, signal);
    this.#builds.delete(tag);
  }

  /** Points the tag `latest` of an image to the latest build. */
  async point(imageName: string, signal: AbortSignal, without?: OciImage): Promise<void> {
    await this.#latest.run(async () => {
      const pointer = latestTag(imageName);
      // Repeats after each change, because another process may have changed the tag without seeing this image.
      for (let round = 0; round < ROUNDS; round += 1) {
        const builds = (await this.#buildsOf(imageName, signal)).filter(
          ({ digest }) => digest !== without?.manifest.digest,
        );
        const [last] = newestBuildFirst(builds, dated, Date.now());
        if (last === undefined) return;
        const image = await this.at(last.tag, signal);
        if (image?.manifest.digest !== last.digest) continue;
        const latest = await this.#registry.manifest(pointer, signal);
        if (latest?.digest === image.manifest.digest) return;
        if (latest !== undefined && !this.#isPointer(imageName, latest)) return;
        await this.#registry.putManifest(pointer, image.manifest.type, image.manifest.text, signal);
      }
      this.#logger.warn(
        `provider ${this.#provider}: ${pointer} still refers to another image after ${ROUNDS} changes`,
      );
    });
  }

  /**
   * Returns whether the manifest at the tag `latest` of an image is one of its builds. Otherwise the tag is foreign, or
   * belongs to another image: image `b-latest` of `a` has the tag `a-b-latest`.
   */
  #isPointer(imageName: string, manifest: StoredManifest): boolean {
    return readImage(this.#provider, latestTag(imageName), manifest)?.imageName === imageName;
  }

  /** Removes an image. `latest` then points to the previous build. */
  async remove(image: OciImage, signal: AbortSignal): Promise<void> {
    const pointer = latestTag(image.imageName);
    const latest = await this.#registry.manifest(pointer, signal);
    if (latest?.digest === image.manifest.digest) await this.point(image.imageName, signal, image);
    await this.#removeManifests(image, signal);
    // If another process moved the tag back, it was deleted together with the manifest.
    if ((await this.#registry.manifest(pointer, signal)) === undefined) {
      await this.point(image.imageName, signal);
    }
  }

  /**
   * Removes a manifest whose tag now refers to another one, unless the tag has moved back. Nothing refers to the
   * manifest, so it may remain where deletions are forbidden.
   */
  async removeReplaced(digest: string, request: ImageKey, signal: AbortSignal): Promise<void> {
    const tag = tagOf(request);
    if ((await this.#registry.manifest(tag, signal))?.digest === digest) return;
    const manifest = await this.#registry.manifest(digest, signal);
    const image = manifest && readImage(this.#provider, tag, manifest);
    if (image === undefined || tagOf(image) !== tag) return;
    try {
      await this.remove(image, signal);
    } catch (error) {
      if (!(error instanceof DeletionForbiddenError)) throw error;
      this.#logger.warn(`${error.message}; the replaced image remains without a tag`);
    }
  }

  /**
   * Removes manifests that no tag of the repository refers to, neither directly nor through an index, and that no
   * unfinished upload will refer to.
   *
   * @param uploadId upload whose manifests are removed
   */
  async removeUnnamed(digests: readonly string[], signal: AbortSignal, uploadId?: string): Promise<void> {
    if (digests.length === 0) return;
    const pushed = await this.#pushed(uploadId); // read first, because an upload that ends has its tag
    const tagged = await this.#read(await this.#registry.tags(signal), signal);
    const manifests = tagged.map(({ manifest }) => manifest);
    const named = await this.#digestsBelow(manifests, signal);
    for (const { digest } of manifests) named.add(digest);
    for (const digest of pushed) named.add(digest);
    for (const digest of digests) {
      if (!named.has(digest)) await this.#registry.deleteManifest(digest, signal);
    }
  }

  /** Removes a manifest with all its tags, and the manifests that only it refers to. */
  async #removeManifests({ tag, manifest }: OciImage, signal: AbortSignal): Promise<void> {
    const below = await this.#digestsBelow([manifest], signal);
    await this.#registry.deleteManifest(manifest.digest, signal);
    this.#builds.delete(tag);
    await this.removeUnnamed([...below], signal);
  }

  async #digestsBelow(manifests: readonly StoredManifest[], signal: AbortSignal): Promise<Set<string>> {
    return await digestsBelow(manifests, async (digest) => await this.#registry.manifest(digest, signal));
  }

  /** Lists all builds of an image name. Reads only unknown builds. */
  async #buildsOf(imageName: string, signal: AbortSignal): Promise<Build[]> {
    const prefix = tagOf({ imageName, imageId: '' });
    const tags = (await this.#registry.tags(signal)).filter((tag) => tag.startsWith(prefix));
    const unknown = tags.filter((tag) => !this.#builds.has(tag));
    for (const each of await this.#read(unknown, signal)) this.#note(each);
    const listed = new Set(tags);
    for (const tag of this.#builds.keys()) {
      if (tag.startsWith(prefix) && !listed.has(tag)) this.#builds.delete(tag);
    }
    return tags
      .flatMap((tag) => this.#builds.get(tag) ?? [])
      .filter((build) => build.imageName === imageName);
  }

  /**
   * Parses a manifest as an image, and remembers its build. `latest` itself is not an image, because it shares an
   * image's manifest.
   */
  #note({ tag, manifest }: TaggedManifest): OciImage | undefined {
    this.#builds.delete(tag);
    const image = readImage(this.#provider, tag, manifest);
    if (image === undefined || tagOf(image) !== tag) return undefined;
    const { imageName, imageId, builtAt } = image;
    this.#builds.set(tag, { tag, digest: manifest.digest, imageName, imageId, ...(builtAt && { builtAt }) });
    return image;
  }

  /** Reads the manifests of tags, in the order of the tags. */
  async #read(tags: readonly string[], signal: AbortSignal): Promise<TaggedManifest[]> {
    const found: TaggedManifest[] = [];
    const rest = tags.values();
    const read = async (): Promise<void> => {
      for (const tag of rest) {
        const manifest = await this.#registry.manifest(tag, signal);
        if (manifest !== undefined) found.push({ tag, manifest });
      }
    };
    await Promise.all(Array.from({ length: READS }, read));
    return found.toSorted((one, other) => (one.tag < other.tag ? -1 : 1));
  }
}

function dated({ imageId, builtAt }: Build): DatedImage {
  return { imageId, builtAt: builtAt?.getTime() };
}
