import type { DiskImage } from '@nodepool-builder/image-builder';
import type { ArtifactRule } from './builds/image-artifact.ts';
import type { ZuulAuthentication } from './credentials/create-credentials.ts';

/** An image that a Zuul job makes: one entry of `zuul-images` in `nodepool.yaml`. */
export interface ZuulImage {
  /** In any of the forms that `parseApiUrl` takes. */
  readonly apiUrl: string;
  /** Needed where the URL names none and the API serves several. */
  readonly tenant?: string;
  /** The short name: `opendev/system-config`, without the name of the Git server. */
  readonly project: string;
  /** A build of any of them is good. At least one. */
  readonly pipelines: readonly string[];
  readonly job: string;
  /** Default: any, and what is no branch too. */
  readonly branch?: string;
  /** What the job returns as `metadata.image_name`, where one job makes several images. Default: the image's own name. */
  readonly imageName?: string;
  /** At least one. */
  readonly artifacts: readonly ArtifactRule[];
  readonly authentication: ZuulAuthentication;
  /** Path of certificates of authorities, PEM, that the API and the artifacts are trusted by, besides the usual ones. */
  readonly caFile?: string;
  /** Seconds between two looks for a new build at most. */
  readonly pollInterval: number;
  /** Where Zuul reports the ends of builds, so that they are looked for at once. */
  readonly mqtt?: MqttSettings;
  /** The URL under which buckets lie that `s3://` names. */
  readonly s3Endpoint?: string;
  /** Hosts that artifacts may be fetched from although they are in a loopback, link-local or private network. */
  readonly allowedHosts?: readonly string[];
  /** Whether a build without the sha256 of its image is refused. Default: no. */
  readonly requireSha256?: boolean;
  /** The largest disk in bytes, as a guest sees it, and the largest unpacked file. Default 256 GiB. */
  readonly largestDisk?: number;
}

/** Where Zuul's MQTT reporter publishes. */
export interface MqttSettings {
  /** `mqtt://host:1883` or `mqtts://host:8883`. */
  readonly url: string;
  /** What is subscribed to; may hold wildcards. */
  readonly topic: string;
  readonly username?: string;
  readonly passwordFile?: string;
  /** Path of certificates of authorities, PEM. */
  readonly caFile?: string;
}

/** A disk image that a Zuul job makes. */
export interface ZuulDiskImage extends DiskImage {
  readonly zuul?: ZuulImage;
}
