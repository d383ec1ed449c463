import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

/** An image in the double, complete or partial. */
export interface CloudImage {
  readonly externalId: string;
  readonly provider: string;
  readonly uploadId: string;
  readonly imageId: string;
  readonly imageName: string;
  isWhole: boolean;
  /** True if the manager has recorded it as ready, so that it counts. */
  isReady: boolean;
}

/** POST requests to the double. */
export type CloudCall =
  | {
      readonly call: 'begin';
      readonly provider: string;
      readonly uploadId: string;
      readonly imageId: string;
      readonly imageName: string;
    }
  | { readonly call: 'finish'; readonly externalId: string }
  | { readonly call: 'delete'; readonly externalId: string }
  | { readonly call: 'discard'; readonly provider: string; readonly uploadId: string }
  | { readonly call: 'list'; readonly provider: string }
  /** Reports images that the manager has recorded as ready. Never fails. */
  | { readonly call: 'ready'; readonly externalIds: readonly string[] };

/**
 * Several clouds in one. As in Glance, images arrive in two calls, so that partial images are possible. Some calls
 * fail: half of them before they take effect, and half afterwards, by a broken connection.
 */
export class CloudDouble {
  readonly images: Map<string, CloudImage> = new Map();
  /** A sentence for each time that a provider lost its last good image of a name. */
  readonly losses: string[] = [];
  /** Fraction of failing calls, from 0 to 1. */
  faultRate: number;
  calls = 0;
  faults = 0;
  readonly #server: Server;

  private constructor(faultRate: number) {
    this.faultRate = faultRate;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy()); // the client was killed
    });
  }

  static async start(faultRate: number): Promise<CloudDouble> {
    const cloud = new CloudDouble(faultRate);
    await new Promise<void>((resolve) => {
      cloud.#server.listen(0, '127.0.0.1', resolve);
    });
    return cloud;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = (await json(request)) as CloudCall;
    this.calls += 1;
    const fails = call.call !== 'ready' && Math.random() < this.faultRate;
    if (fails) this.faults += 1;
    if (fails && Math.random() < 0.5) {
      response.writeHead(503).end();
      return;
    }
    const answer = this.#do(call);
    if (fails) {
      response.destroy();
      return;
    }
    response.end(JSON.stringify(answer ?? null));
  }

  #do(call: CloudCall): unknown {
    switch (call.call) {
      case 'begin':
        return this.#begin(call);
      case 'finish': {
        const image = this.images.get(call.externalId);
        if (image !== undefined) image.isWhole = true;
        return image?.externalId;
      }
      case 'ready':
        for (const id of call.externalIds) {
          const image = this.images.get(id);
          if (image !== undefined) image.isReady = true;
        }
        return undefined;
      case 'delete':
        return this.#remove(call.externalId);
      case 'discard':
        for (const { externalId } of this.#ofUpload(call)) this.#remove(externalId);
        return undefined;
      case 'list':
        return [...this.images.values()].filter(
          ({ provider, isWhole }) => provider === call.provider && isWhole,
        );
    }
  }

  /** A repeated request for an upload returns the same image. */
  #begin(call: Extract<CloudCall, { call: 'begin' }>): string {
    const [known] = this.#ofUpload(call);
    if (known !== undefined) return known.externalId;
    const { provider, uploadId, imageId, imageName } = call;
    const externalId = randomUUID();
    const image = { externalId, provider, uploadId, imageId, imageName, isWhole: false, isReady: false };
    this.images.set(externalId, image);
    return externalId;
  }

  #ofUpload(wanted: { readonly provider: string; readonly uploadId: string }): readonly CloudImage[] {
    return [...this.images.values()].filter(
      ({ provider, uploadId }) => provider === wanted.provider && uploadId === wanted.uploadId,
    );
  }

  #remove(externalId: string): void {
    const image = this.images.get(externalId);
    this.images.delete(externalId);
    if (image?.isReady !== true) return;
    const { provider, imageName } = image;
    const isLast = ![...this.images.values()].some(
      (other) => other.provider === provider && other.imageName === imageName && other.isReady,
    );
    if (isLast)
      this.losses.push(`${provider} has no good image ${imageName} any more: ${image.imageId} went`);
  }
}
