import type { SettingsOf } from '@nodepool-builder/image-builder';
import { objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { CloudError, JsonReader } from '@nodepool-builder/image-builder/plugin';
import { listResources } from '../session/list-resources.ts';
import type { ServiceClient } from '../session/service-client.ts';

const RESOURCE = objectOf({ id: TEXT }, { description: { type: ['string', 'null'] } });

/** A network, port or floating IP of Neutron. */
export type NetworkResource = SettingsOf<typeof RESOURCE>;

const RESOURCE_READER = new JsonReader(RESOURCE);

/** The part of Neutron's API v2.0 that builds need. All methods throw CloudError. */
export class NetworkApi {
  readonly #client: ServiceClient;

  constructor(client: ServiceClient) {
    this.#client = client;
  }

  /** Returns the ids of networks with this name or id. */
  async networkIds(nameOrId: string, signal: AbortSignal): Promise<readonly string[]> {
    const byId = await this.#list('networks', { id: nameOrId }, signal);
    const found = byId.length > 0 ? byId : await this.#list('networks', { name: nameOrId }, signal);
    return found.map(({ id }) => id);
  }

  /** Returns the ids of a server's ports. */
  async portIds(serverId: string, signal: AbortSignal): Promise<readonly string[]> {
    return (await this.#list('ports', { device_id: serverId }, signal)).map(({ id }) => id);
  }

  async createFloatingIp(
    request: { readonly networkId: string; readonly portId: string; readonly description: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { networkId: floating_network_id, portId: port_id, description } = request;
    const body = { floatingip: { floating_network_id, port_id, description } };
    await this.#client.json('POST', '/floatingips', { body, signal });
  }

  /**
   * Lists the visible floating IPs with these properties. Empty if the cloud does not have floating IPs, or not for
   * this user.
   */
  async floatingIps(
    query: Readonly<Partial<Record<'description', string>>>,
    signal: AbortSignal,
  ): Promise<readonly NetworkResource[]> {
    try {
      return await this.#list('floatingips', query, signal);
    } catch (error) {
      if (error instanceof CloudError && error.refused) return [];
      throw error;
    }
  }

  /** A missing floating IP is not an error. */
  async deleteFloatingIp(id: string, signal: AbortSignal): Promise<void> {
    await this.#client.delete(`/floatingips/${encodeURIComponent(id)}`, { signal });
  }

  async #list(
    name: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<readonly NetworkResource[]> {
    const list = { path: `/${name}`, name, query, reader: RESOURCE_READER, signal };
    return await listResources(this.#client, list);
  }
}
