import type { MachineSite } from '@nodepool-builder/image-builder/internal';
import type { ImageApi } from '../image-api.ts';
import type { TransferRetries } from '../upload/retry.ts';
import type { ComputeApi } from './compute-api.ts';
import type { NetworkApi } from './network-api.ts';

/** Instance settings: keys of a provider in `nodepool.yaml`. */
export interface InstanceSettings {
  /** Names or ids of the instance's networks, or `none`. Default: the project's only network. */
  readonly networks?: 'none' | readonly string[] | undefined;
  /** Name or id of the floating IP network (`pool`). Default: no floating IP. */
  readonly pool?: string | undefined;
  /** True if instances get a config drive. Default: the cloud's setting. */
  readonly configDrive?: boolean;
  /** True to prefer an IPv6 address (`ipv6-preferred`). Default false. */
  readonly ipv6Preferred?: boolean;
}

/** A cloud in which one provider launches instances for one builder. */
export interface InstanceCloud extends InstanceSettings, MachineSite {
  /** Name of the cloud in messages. */
  readonly name: string;
  /** `providers[].name`. */
  readonly provider: string;
  readonly compute: ComputeApi;
  readonly network: NetworkApi;
  readonly images: ImageApi;
  /** Retries of captured image downloads. Default: 3 attempts, the second after 5 s. */
  readonly retry?: TransferRetries;
}
