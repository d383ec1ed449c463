import { originOfBuild } from '../attestation/origin/origin.ts';
import { OriginCache } from '../attestation/origin/origin-cache.ts';
import type { BuildOrigin, UploadOrigin } from '../attestation/origin/origin-record.ts';
import { readKeys } from '../attestation/origin/trusted-keys.ts';
import type { SiteView } from './site-view.ts';

/** The origins of images, for the page and the API. */
export class Origins {
  readonly #view: Pick<SiteView, 'current' | 'useStore'>;
  readonly #cache = new OriginCache();

  constructor(view: Pick<SiteView, 'current' | 'useStore'>) {
    this.#view = view;
  }

  /** Describes the origin of a build, even without a record of the manager. */
  async build(imageId: string): Promise<BuildOrigin> {
    const { state, configuration } = await this.#view.current();
    const keys = await readKeys(configuration);
    if (!state.builds.has(imageId)) return await originOfBuild({ state, store: EMPTY, ...keys }, imageId);
    return await this.#view.useStore((store) => this.#cache.build({ state, store, ...keys }, imageId));
  }

  /** Describes the origin of an upload; undefined if no manager has a record of it. */
  async upload(uploadId: string): Promise<UploadOrigin | undefined> {
    const { state, configuration } = await this.#view.current();
    const upload = state.uploads.get(uploadId);
    if (upload === undefined) return undefined;
    const keys = await readKeys(configuration);
    return await this.#view.useStore((store) => this.#cache.upload({ state, store, ...keys }, upload));
  }
}

/** A store without documents. */
const EMPTY = { attestations: async () => [], packages: async () => undefined };
