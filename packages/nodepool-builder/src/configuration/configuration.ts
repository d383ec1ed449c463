import type { DiskImage, ImageFormat } from '@nodepool-builder/image-builder';

/** A `nodepool.yaml` that has been read and found good; paths in it are absolute. */
export interface Configuration {
  /** Absolute path of the file it came from. */
  readonly file: string;
  readonly imagesDir: string;
  readonly buildLogDir?: string;
  /** Empty if the file names none: the daemon then runs a job server of its own. */
  readonly gearmanServers: readonly GearmanServer[];
  readonly diskimages: readonly DiskImageConfiguration[];
  readonly providers: readonly ProviderConfiguration[];
}

/** One entry of `gearman-servers`. */
export interface GearmanServer {
  readonly host: string;
  readonly port: number;
}

/** One entry of `diskimages`. Its formats are what the providers want of it. */
export interface DiskImageConfiguration extends DiskImage {
  /** Name of the builder that makes it. */
  readonly builder: string;
}

/** One entry of `providers`. */
export interface ProviderConfiguration {
  readonly name: string;
  readonly type: 'openstack' | 'directory';
  readonly imageType: ImageFormat;
  /** For `type: directory`: where it serves from. */
  readonly directory?: string;
  readonly images: readonly ProviderImageConfiguration[];
}

/** One entry of `providers[].images`. */
export interface ProviderImageConfiguration {
  readonly name: string;
  readonly diskimage?: string;
  readonly meta: Readonly<Record<string, string>>;
}
