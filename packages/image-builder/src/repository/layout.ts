import { join } from 'node:path';
import { formatOfExtension, formatRow, type ImageFormat } from '../formats.ts';
import { makeStateDirectory } from '../modes.ts';

/** Name of the directory for state below `images-dir`. */
export const WORKSPACE = '.nodepool-builder';

/** The paths of one `images-dir`. */
export class Layout {
  readonly root: string;
  readonly workspace: string;
  /** File that the owner of the directory locks. */
  readonly lock: string;
  /** File that names the owner for other processes. */
  readonly owner: string;
  /** Directory of each running build or conversion. */
  readonly staging: string;
  /**
   * Files of deleted images until they are removed. The directory is created at the start, before a disk can be full.
   */
  readonly trash: string;
  /** `<image-id>.json` of each image that was built here. */
  readonly manifests: string;
  /** An empty file, named after the image id, for each delete that has started. */
  readonly deletes: string;
  /** An empty file, named after the image id, for each delete whose end the job server has not acknowledged. */
  readonly deleted: string;
  /** Data that failed builds keep for the next attempt, in a directory for each image name. */
  readonly state: string;
  /** Downloads of builds, in a directory for each image name. */
  readonly cache: string;
  /** Default directory of build logs. */
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
    this.cache = join(workspace, 'cache');
    this.logs = join(workspace, 'logs');
  }

  async create(): Promise<void> {
    const { workspace, staging, trash, manifests, deletes, deleted, logs } = this;
    for (const directory of [workspace, staging, trash, manifests, deletes, deleted, logs]) {
      await makeStateDirectory(directory);
    }
  }

  image(imageId: string, format: ImageFormat): string {
    // The result of join keeps the parts of which it was made, which takes four times the memory.
    return `${this.root}/${imageFileName(imageId, format)}`;
  }

  manifest(imageId: string): string {
    return join(this.manifests, `${imageId}.json`);
  }
}

/** Returns the file name `<image-id>.<extension>`. */
export function imageFileName(imageId: string, format: ImageFormat): string {
  return `${imageId}.${formatRow(format).extension}`;
}

/**
 * Splits `<image-id>.<extension>` at the last dot. Returns undefined for files that are not images: hidden files,
 * checksum files, unknown extensions. The id may be invalid.
 */
export function parseImageFileName(
  name: string,
): { readonly imageId: string; readonly format: ImageFormat } | undefined {
  const dot = name.lastIndexOf('.');
  const format = formatOfExtension(name.slice(dot + 1));
  if (dot <= 0 || name.startsWith('.') || format === undefined) return undefined;
  return { imageId: name.slice(0, dot), format };
}
