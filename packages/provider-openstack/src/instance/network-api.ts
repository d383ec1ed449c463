import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { OpenStackError } from '../openstack-error.ts';
import { listPages } from '../session/list-pages.ts';
import type { ServiceClient } from '../session/service-client.ts';

/** A floating IP of the project. */
export interface FloatingIp {
  readonly id: string;
  readonly description: string;
}

/**
 * The part of Neutron's API v2.0 that builds need. They throw OpenStackError; what is no proper answer is
 * `invalid-answer`.
 */
export class NetworkApi {
  readonly #client: ServiceClient;

  constructor(client: ServiceClient) {
    this.#client = client;
  }

  /** The ids of the networks of this name or id. */
  async networkIds(nameOrId: string, signal: AbortSignal): Promise<readonly string[]> {
    const ids = async (key: 'id' | 'name'): Promise<readonly string[]> =>
      await this.#list('networks', { [key]: nameOrId }, signal, readId);
    const byId = await ids('id');
    return byId.length > 0 ? byId : await ids('name');
  }

  /** The ids of the ports of a server. */
  async portIds(serverId: string, signal: AbortSignal): Promise<readonly string[]> {
    return await this.#list('ports', { device_id: serverId }, signal, readId);
  }

  async createFloatingIp(
    request: { readonly networkId: string; readonly portId: string; readonly description: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { networkId: floating_network_id, portId: port_id, description } = request;
    const body = { floatingip: { floating_network_id, port_id, description } };
    await this.#client.json('POST', '/floatingips', { body, signal });
  }

  /** Those that have these properties, of all that one may see; none in a cloud without Neutron. */
  async floatingIps(
    query: Readonly<Partial<Record<'description', string>>>,
    signal: AbortSignal,
  ): Promise<readonly FloatingIp[]> {
    try {
      return await this.#list('floatingips', query, signal, readFloatingIp);
    } catch (error) {
      if (error instanceof OpenStackError && error.code === 'no-such-service') return [];
      throw error;
    }
  }

  /** A floating IP that is not there is no error. */
  async deleteFloatingIp(id: string, signal: AbortSignal): Promise<void> {
    const path = `/floatingips/${encodeURIComponent(id)}`;
    await this.#client.json('DELETE', path, { expect: [202, 204, 404], signal });
  }

  async #list<T>(
    name: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    read: (value: unknown) => T,
  ): Promise<readonly T[]> {
    return await listPages(this.#client, { path: `/${name}`, name, query, read, signal });
  }
}

const RESOURCE = new JsonReader({
  type: 'object',
  required: ['id'],
  properties: { id: { type: 'string' }, description: { type: ['string', 'null'] } },
});

function readId(value: unknown): string {
  return RESOURCE.check(value).id;
}

function readFloatingIp(value: unknown): FloatingIp {
  const { id, description } = RESOURCE.check(value);
  return { id, description: description ?? '' };
}
