import type { Logger } from '@nodepool-builder/image-builder';
import type { ImageApi } from '../image-api.ts';
import type { ServiceClient } from '../session/service-client.ts';
import type { TransferRetries } from '../upload/retry.ts';
import type { ComputeApi } from './compute-api.ts';
import type { NetworkApi } from './network-api.ts';

/** How instances are made and reached: keys of a provider in `nodepool.yaml`. */
export interface InstanceSettings {
  /** Names or ids of the networks of an instance; `none`: no network. Default: the only one that the project has. */
  readonly networks?: 'none' | readonly string[];
  /** Name or id of the network that floating IPs are taken from (`pool`). Default: there are none. */
  readonly pool?: string;
  /** Default: the cloud's. */
  readonly configDrive?: boolean;
  /** Among addresses that are equally good, one of IPv6 (`ipv6-preferred`). Default false. */
  readonly ipv6Preferred?: boolean;
}

/** A cloud in which one provider launches instances for one builder. */
export interface InstanceCloud {
  /** As messages call it. */
  readonly name: string;
  /** `providers[].name`. */
  readonly provider: string;
  /** Begins the names of all that is made. */
  readonly namePrefix: string;
  readonly settings: InstanceSettings;
  readonly compute: ComputeApi;
  readonly network: NetworkApi;
  readonly images: ImageApi;
  /** Glance, for what is larger than an answer. */
  readonly imageData: ServiceClient;
  /** How often an image is fetched, from its beginning, when the connection breaks or the bytes are not the cloud's. */
  readonly retry: TransferRetries;
  readonly logger: Logger;
}
