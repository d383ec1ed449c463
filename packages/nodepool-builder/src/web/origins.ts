import { originOfBuild, originOfUpload, readKeys } from '../attestation/origin/origin.ts';
import type { BuildOrigin, UploadOrigin } from '../attestation/origin/origin-record.ts';
import type { SiteView } from './site-view.ts';

type View = Pick<SiteView, 'current' | 'useStore'>;

/** Describes the origin of a build, whether or not a manager has a record of it. */
export async function readBuildOrigin(view: View, imageId: string): Promise<BuildOrigin> {
  const { state, configuration } = await view.current();
  const keys = await readKeys(configuration);
  if (!state.builds.has(imageId)) return await originOfBuild({ state, store: EMPTY, ...keys }, imageId);
  return await view.useStore((store) => originOfBuild({ state, store, ...keys }, imageId));
}

/** Describes the origin of an upload; undefined if no manager has a record of it. */
export async function readUploadOrigin(view: View, uploadId: string): Promise<UploadOrigin | undefined> {
  const { state, configuration } = await view.current();
  const upload = state.uploads.get(uploadId);
  if (upload === undefined) return undefined;
  const keys = await readKeys(configuration);
  return await view.useStore((store) => originOfUpload({ state, store, ...keys }, upload));
}

/** A store without documents. */
const EMPTY = { attestations: async () => [], packages: async () => undefined };
