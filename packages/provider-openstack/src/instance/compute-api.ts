import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';
import { listPages } from '../session/list-pages.ts';
import type { JsonAnswer, JsonOptions, ServiceClient } from '../session/service-client.ts';
import {
  type Flavor,
  type KeyPair,
  type NovaServer,
  readFlavor,
  readKeyPairs,
  readServer,
  readShownServer,
} from './nova-server.ts';

/** What a server is made with. */
export interface ServerRequest {
  readonly name: string;
  readonly imageId: string;
  readonly flavorId: string;
  readonly keyName: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** `none`, ids of networks, or undefined for the only one that there is. */
  readonly networks: 'none' | readonly string[] | undefined;
  readonly configDrive: boolean | undefined;
  readonly userData: string | undefined;
}

/** What is done with a server: a body of `POST /servers/{id}/action`. */
type ServerAction = Readonly<Record<'os-stop' | 'createImage' | 'os-getConsoleOutput', object | null>>;

/** Everything else that we ask is in the first version. A cloud that does not know this one says so with 406. */
const NETWORKS_NONE = '2.37';

/** Without a limit of lines, Nova gives all that it keeps. */
const CONSOLE_OUTPUT = { 'os-getConsoleOutput': {} };

/**
 * The part of Nova's API v2.1 that builds need. They throw OpenStackError; what is no proper answer is
 * `invalid-answer`.
 */
export class ComputeApi {
  readonly #client: ServiceClient;

  constructor(client: ServiceClient) {
    this.#client = client;
  }

  async flavors(signal: AbortSignal): Promise<readonly Flavor[]> {
    return await listPages(this.#client, {
      path: '/flavors/detail',
      name: 'flavors',
      read: readFlavor,
      signal,
    });
  }

  /** The project's servers whose names hold a text without special characters. */
  async servers(name: string, signal: AbortSignal): Promise<readonly NovaServer[]> {
    return await listPages(this.#client, {
      path: '/servers/detail',
      name: 'servers',
      query: { name },
      read: readServer,
      signal,
    });
  }

  /** @returns the id of the server, which Nova makes from now on */
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
    const headers = networks === 'none' ? { 'openstack-api-version': `compute ${NETWORKS_NONE}` } : {};
    const options = { body: { server }, headers, validate: readServerId, signal };
    return (await this.#client.json('POST', '/servers', options)).value;
  }

  async server(id: string, signal: AbortSignal): Promise<NovaServer> {
    const options = { validate: readShownServer, signal };
    return (await this.#client.json('GET', serverPath(id), options)).value;
  }

  /** A server that is not there is no error. */
  async deleteServer(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.json('DELETE', serverPath(id), { expect: [202, 204, 404], signal });
  }

  /** Has Nova push the power button, and cut the power some time later. */
  async stop(id: string, signal: AbortSignal): Promise<void> {
    await this.#act(id, { 'os-stop': null }, signal);
  }

  /** @returns the id of the image, which Nova fills from now on */
  async createImage(
    id: string,
    name: string,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string> {
    const { headers } = await this.#act(id, { createImage: { name, metadata } }, signal);
    const imageId = headers.location?.split('/').at(-1);
    if (imageId) return imageId;
    throw new OpenStackError(
      'invalid-answer',
      `server ${id}: the cloud does not say in a Location header which image it makes; ask its operator which proxy removes that`,
    );
  }

  async consoleOutput(id: string, signal: AbortSignal): Promise<string> {
    return (await this.#act(id, CONSOLE_OUTPUT, signal, { validate: readOutput, replay: true })).value;
  }

  /** Those of the user. */
  async keyPairs(signal: AbortSignal): Promise<readonly KeyPair[]> {
    const options = { validate: readKeyPairs, signal };
    return (await this.#client.json('GET', '/os-keypairs', options)).value;
  }

  async createKeyPair({ name, publicKey }: KeyPair, signal: AbortSignal): Promise<void> {
    const body = { keypair: { name, public_key: publicKey } };
    await this.#client.json('POST', '/os-keypairs', { body, signal });
  }

  /** A key pair that is not there is no error. */
  async deleteKeyPair(name: string, signal: AbortSignal): Promise<void> {
    const path = `/os-keypairs/${encodeURIComponent(name)}`;
    await this.#client.json('DELETE', path, { expect: [202, 204, 404], signal });
  }

  async #act<T = undefined>(
    id: string,
    action: Partial<ServerAction>,
    signal: AbortSignal,
    options: Pick<JsonOptions<T>, 'validate' | 'replay'> = {},
  ): Promise<JsonAnswer<T>> {
    return await this.#client.json('POST', `${serverPath(id)}/action`, { ...options, body: action, signal });
  }
}

function serverPath(id: string): string {
  return `/servers/${encodeURIComponent(id)}`;
}

const CREATED = new JsonReader({
  type: 'object',
  required: ['server'],
  properties: {
    server: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  },
});

function readServerId(answer: unknown): string {
  return CREATED.check(answer).server.id;
}

const OUTPUT = new JsonReader({
  type: 'object',
  required: ['output'],
  properties: { output: { type: 'string' } },
});

function readOutput(answer: unknown): string {
  return OUTPUT.check(answer).output;
}
