import { join } from 'node:path';
import { formatRow, type ImageFormat } from '../formats.ts';
import { makeStateDirectory } from '../modes.ts';

/** Where what belongs to this software lies, below `images-dir`. */
export const WORKSPACE = '.nodepool-builder';

/** The paths of one `images-dir`. */
export class Layout {
  /** `images-dir` itself. */
  readonly root: string;
  /** What of it belongs to this software. */
  readonly workspace: string;
  /** Locked by the process that owns the directory. */
  readonly lock: string;
  /** Tells others who that is. */
  readonly owner: string;
  /** What is not ready: one directory for each build and conversion. */
  readonly staging: string;
  /** What deleted images leave, until it is removed. It is there before any disk is full. */
  readonly trash: string;
  /** `<image-id>.json` of each image that was built here. */
  readonly manifests: string;
  /** An empty file named by the image id for each delete that has begun. */
  readonly deletes: string;
  /** The same for each that has ended, but whose end the job server has not acknowledged. */
  readonly deleted: string;
  /** What builds keep for the case that they are asked for again: a directory for each image name. */
  readonly state: string;
  /** Build logs, unless they go elsewhere. */
  readonly logs: string;

  constructor(root: string) {
    const workspace = join(root, WORKSPACE);
    this.root = root;
    this.workspace = workspace;
    this.lock = join(workspace, 'lock');
    this.owner = join(workspace, 'owner.json');
    this.staging = join(workspace, 'staging');
    this.trash = join(workspace, 'trash');
    this.manifests = join(workspace, 'manifests');
    this.deletes = join(workspace, 'deletes');
    this.deleted = join(workspace, 'deleted');
    this.state = join(workspace, 'state');
    this.logs = join(workspace, 'logs');
  }

  async create(): Promise<void> {
    const { workspace, staging, trash, manifests, deletes, deleted, logs } = this;
    for (const directory of [workspace, staging, trash, manifests, deletes, deleted, logs]) {
      await makeStateDirectory(directory);
    }
  }

  image(imageId: string, format: ImageFormat): string {
    return join(this.root, imageFileName(imageId, format));
  }

  manifest(imageId: string): string {
    return join(this.manifests, `${imageId}.json`);
  }
}

/** `<image-id>.<extension>`. */
export function imageFileName(imageId: string, format: ImageFormat): string {
  return `${imageId}.${formatRow(format).extension}`;
}
