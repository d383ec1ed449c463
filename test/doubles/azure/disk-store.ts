import { randomUUID } from 'node:crypto';
import {
  BlobServiceClient,
  type ContainerClient,
  type PageBlobClient,
  StorageSharedKeyCredential,
} from '@azure/storage-blob';

/** Blob name of each disk, as in Azure. */
const BLOB = 'abcd';

/** Account for page blobs, in Azurite or Azure. */
export interface BlobAccount {
  /** Origin without the account: `http://127.0.0.1:10000`. */
  readonly url: string;
  readonly account: string;
  readonly key: string;
}

/** Contents of the disks. Each is a page blob in its own container, whose access can be revoked. */
export class DiskStore {
  readonly #service: BlobServiceClient;
  /** Origin of the URLs for clients. */
  readonly #origin: string;

  constructor({ url, account, key }: BlobAccount, origin: string = url) {
    this.#service = new BlobServiceClient(`${url}/${account}`, new StorageSharedKeyCredential(account, key));
    this.#origin = origin;
  }

  /** Creates a blob. @returns the name of its container */
  async create(size: number): Promise<string> {
    const name = `md-${randomUUID()}`;
    await this.#container(name).create();
    await this.#blob(name).create(size);
    return name;
  }

  /** Returns a URL that grants access until {@link revoke}. */
  async grant(name: string, permissions: 'r' | 'rw', seconds: number): Promise<string> {
    const container = this.#container(name);
    const expiresOn = new Date(Date.now() + seconds * 1000);
    const id = randomUUID();
    await container.setAccessPolicy(undefined, [{ id, accessPolicy: { expiresOn, permissions } }]);
    const url = new URL(await this.#blob(name).generateSasUrl({ identifier: id }));
    return `${this.#origin}${url.pathname}${url.search}`;
  }

  async revoke(name: string): Promise<void> {
    await this.#container(name).setAccessPolicy(undefined, []);
  }

  async remove(name: string): Promise<void> {
    await this.#container(name).deleteIfExists();
  }

  /** Returns whether the blob ends with the footer of a VHD of this size. */
  async isVhd(name: string): Promise<boolean> {
    const size = await this.#size(name);
    const footer = await this.#blob(name).downloadToBuffer(size - 512, 512);
    const sum = Buffer.from(footer)
      .fill(0, 64, 68)
      .reduce((total, byte) => total + byte, 0);
    return (
      footer.toString('latin1', 0, 8) === 'conectix' &&
      footer.readBigUInt64BE(48) === BigInt(size - 512) &&
      footer.readUInt32BE(60) === 2 &&
      footer.readUInt32BE(64) === ~sum >>> 0
    );
  }

  /** Returns the disk without its footer. */
  async read(name: string): Promise<Buffer> {
    return await this.#blob(name).downloadToBuffer(0, (await this.#size(name)) - 512);
  }

  /** Returns the number of bytes written. */
  async written(name: string): Promise<number> {
    let bytes = 0;
    for await (const { start, end } of this.#blob(name).listPageRanges()) bytes += end - start + 1;
    return bytes;
  }

  async #size(name: string): Promise<number> {
    return (await this.#blob(name).getProperties()).contentLength ?? 0;
  }

  #container(name: string): ContainerClient {
    return this.#service.getContainerClient(name);
  }

  #blob(name: string): PageBlobClient {
    return this.#container(name).getPageBlobClient(BLOB);
  }
}
