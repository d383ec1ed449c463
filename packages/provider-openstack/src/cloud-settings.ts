import type { ImageFormat } from '@nodepool-builder/image-builder';

/** A user or project: its id, or its name and domain. Keystone v2 has no domains. */
export interface NamedInDomain {
  readonly id?: string;
  readonly name?: string;
  readonly domainId?: string;
  readonly domainName?: string;
}

/** Scope of a token: one of these, or none for an unscoped token. */
export interface AuthScope {
  readonly project?: NamedInDomain;
  readonly domain?: { readonly id?: string; readonly name?: string };
  /** `all`: the whole deployment. */
  readonly system?: 'all';
}

/** Authentication settings, one shape per `auth_type` of `clouds.yaml`. Secrets never appear in a message. */
export type CloudAuth =
  | {
      readonly type: 'password';
      /** `auth_url`. */
      readonly url: string;
      readonly user: NamedInDomain;
      readonly password: string;
      readonly scope: AuthScope;
      /** Version of the Keystone API. Default: discovered. */
      readonly version?: 2 | 3;
    }
  | {
      readonly type: 'token';
      readonly url: string;
      readonly token: string;
      readonly scope: AuthScope;
      readonly version?: 2 | 3;
    }
  | {
      readonly type: 'application-credential';
      readonly url: string;
      readonly id?: string;
      /** Name of the credential and its user, for a credential without an id. */
      readonly name?: string;
      readonly user?: NamedInDomain;
      readonly secret: string;
    }
  | {
      /** No Keystone. */
      readonly type: 'none';
      readonly endpoint: string;
    };

/** Credentials for Keystone. */
export type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

/** Settings for finding one service in the catalog. */
export interface ServiceSettings {
  /** Service type in the catalog: `image`, `compute`. */
  readonly type: string;
  readonly name?: string;
  /** `public`, `internal` or `admin`. */
  readonly interface: string;
  readonly regionName?: string;
  /** URL that replaces the one in the catalog. */
  readonly endpointOverride?: string;
}

/** One cloud, with the merged settings of `clouds.yaml`, profiles and credentials. */
export interface CloudSettings {
  /** Name in the configuration, for messages. */
  readonly name: string;
  readonly auth: CloudAuth;
  readonly image: ServiceSettings;
  readonly objectStore: ServiceSettings;
  readonly compute: ServiceSettings;
  readonly network: ServiceSettings;
  readonly tls: {
    /** True to verify certificates. Default true. */
    readonly verify: boolean;
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
  };
  /** Time limit for a response, in seconds. Default 60. */
  readonly apiTimeout: number;
  /** `image_format`: image format of the cloud. Default `qcow2`. */
  readonly imageFormat: ImageFormat;
  /** `image_api_use_tasks`: whether images are imported by a task, from the object store. Default false. */
  readonly imageApiUseTasks: boolean;
  /** `disable_vendor_agent`: image properties that the vendor requires. */
  readonly disableVendorAgent: Readonly<Record<string, string>>;
}
