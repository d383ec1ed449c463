import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { CloudError, JsonReader } from '@nodepool-builder/image-builder/plugin';
import { listResources } from '../session/list-resources.ts';
import type { JsonOptions, JsonResponse, ServiceClient } from '../session/service-client.ts';
import {
  FLAVOR_READER,
  type Flavor,
  KEY_PAIR,
  type KeyPair,
  type NovaServer,
  SERVER,
  SERVER_READER,
} from './nova-server.ts';

/** Properties of a new server. */
export interface ServerRequest {
  readonly name: string;
  readonly imageId: string;
  readonly flavorId: string;
  readonly keyName: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** `none`, network ids, or undefined for the project's only network. */
  readonly networks: 'none' | readonly string[] | undefined;
  readonly configDrive: boolean | undefined;
  readonly userData: string | undefined;
}

/**
 * Microversion for servers without networks. Older clouds respond with 406, so all other requests use the first
 * microversion.
 */
const NETWORKS_NONE = { 'openstack-api-version': 'compute 2.37' };

/** The part of Nova's API v2.1 that builds need. All methods throw CloudError. */
export class ComputeApi {
  readonly #client: ServiceClient;

  constructor(client: ServiceClient) {
    this.#client = client;
  }

  async flavors(signal: AbortSignal): Promise<readonly Flavor[]> {
    const list = { path: '/flavors/detail', name: 'flavors', reader: FLAVOR_READER, signal };
    return await listResources(this.#client, list);
  }

  /** The project's servers whose names contain a text without special characters. */
  async servers(name: string, signal: AbortSignal): Promise<readonly NovaServer[]> {
    const list = { path: '/servers/detail', name: 'servers', query: { name }, reader: SERVER_READER, signal };
    return await listResources(this.#client, list);
  }

  /** Starts the creation of a server and returns its id. */
  async createServer(request: ServerRequest, signal: AbortSignal): Promise<string> {
    const { networks, configDrive, userData } = request;
    const server = {
      name: request.name,
      imageRef: request.imageId,
      flavorRef: request.flavorId,
      key_name: request.keyName,
      metadata: request.metadata,
      ...(networks !== undefined && {
        networks: networks === 'none' ? networks : networks.map((uuid) => ({ uuid })),
      }),
      ...(configDrive !== undefined && { config_drive: configDrive }),
      ...(userData !== undefined && { user_data: Buffer.from(userData).toString('base64') }),
    };
    const headers = networks === 'none' ? NETWORKS_NONE : {};
    const options = { body: { server }, headers, reader: CREATED, signal };
    return (await this.#client.json('POST', '/servers', options)).value.server.id;
  }

  async server(id: string, signal: AbortSignal): Promise<NovaServer> {
    return (await this.#client.get(serverPath(id), SHOWN_SERVER, { signal })).server;
  }

  /** A missing server is not an error. */
  async deleteServer(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.delete(serverPath(id), { signal });
  }

  /** Presses the power button; Nova powers the server off some time later. */
  async stop(id: string, signal: AbortSignal): Promise<void> {
    await this.#act(id, { body: { 'os-stop': null }, signal });
  }

  /** Starts the capture of a server and returns the image id. */
  async createImage(
    id: string,
    name: string,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string> {
    const { headers } = await this.#act(id, { body: { createImage: { name, metadata } }, signal });
    const imageId = headers.location?.split('/').at(-1);
    if (imageId) return imageId;
    throw new CloudError(
      'invalid-response',
      `server ${id}: the response has no Location header with the new image; ask the operator of the cloud which proxy removes it`,
    );
  }

  async consoleOutput(id: string, signal: AbortSignal): Promise<string> {
    const body = { 'os-getConsoleOutput': {} }; // Without a length, Nova returns all lines that it keeps.
    return (await this.#act(id, { body, reader: OUTPUT, replay: true, signal })).value.output;
  }

  /** Key pairs of the user. */
  async keyPairs(signal: AbortSignal): Promise<readonly KeyPair[]> {
    const { keypairs } = await this.#client.get('/os-keypairs', KEY_PAIRS, { signal });
    return keypairs.map(({ keypair }) => keypair);
  }

  async createKeyPair(keypair: KeyPair, signal: AbortSignal): Promise<void> {
    await this.#client.json('POST', '/os-keypairs', { body: { keypair }, signal });
  }

  /** A missing key pair is not an error. */
  async deleteKeyPair(name: string, signal: AbortSignal): Promise<void> {
    await this.#client.delete(`/os-keypairs/${encodeURIComponent(name)}`, { signal });
  }

  async #act<T = undefined>(id: string, options: JsonOptions<T>): Promise<JsonResponse<T>> {
    return await this.#client.json('POST', `${serverPath(id)}/action`, options);
  }
}

function serverPath(id: string): string {
  return `/servers/${encodeURIComponent(id)}`;
}

const CREATED = new JsonReader(objectOf({ server: objectOf({ id: TEXT }) }));

const SHOWN_SERVER = new JsonReader(objectOf({ server: SERVER }));

const KEY_PAIRS = new JsonReader(
  objectOf({ keypairs: { type: 'array', items: objectOf({ keypair: KEY_PAIR }) } }),
);

const OUTPUT = new JsonReader(objectOf({ output: TEXT }));
