import type { ImageFormat } from '@nodepool-builder/image-builder';

/** A user or a project is named by its id, or by its name and its domain; Keystone v2 knows no domains. */
export interface NamedInDomain {
  readonly id?: string;
  readonly name?: string;
  readonly domainId?: string;
  readonly domainName?: string;
}

/** What a token is for: one of them, or none for an unscoped token. */
export interface AuthScope {
  readonly project?: NamedInDomain;
  readonly domain?: { readonly id?: string; readonly name?: string };
  /** `all`: the whole deployment. */
  readonly system?: 'all';
}

/** How a token is had, as `auth_type` of `clouds.yaml` says. Secrets in it never reach a message. */
export type CloudAuth =
  | {
      readonly type: 'password';
      /** `auth_url`. */
      readonly url: string;
      readonly user: NamedInDomain;
      readonly password: string;
      readonly scope: AuthScope;
      /** Keystone's version if the configuration fixes it; otherwise it is discovered. */
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
      /** Without an id: the credential's name, and whose it is. */
      readonly name?: string;
      readonly user?: NamedInDomain;
      readonly secret: string;
    }
  | {
      /** No Keystone at all. */
      readonly type: 'none';
      readonly endpoint: string;
    };

/** Where one service of a cloud is found, as far as the configuration says more than the catalog. */
export interface ServiceSettings {
  /** Its type in the catalog: `image`, `compute`. */
  readonly type: string;
  readonly name?: string;
  /** `public`, `internal` or `admin`. */
  readonly interface: string;
  readonly regionName?: string;
  /** Its address; the catalog is not asked then. */
  readonly endpointOverride?: string;
}

/** One cloud, with everything that `clouds.yaml`, profiles and credentials say of it merged and resolved. */
export interface CloudSettings {
  /** As the configuration calls it; messages name it. */
  readonly name: string;
  readonly auth: CloudAuth;
  readonly image: ServiceSettings;
  readonly objectStore: ServiceSettings;
  readonly compute: ServiceSettings;
  readonly network: ServiceSettings;
  readonly tls: {
    /** False only where the operator said so. Default true. */
    readonly verify: boolean;
    readonly caFile?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
  };
  /** Seconds that a request may stay without an answer. Default 60. */
  readonly apiTimeout: number;
  /** `image_format`: what the cloud takes. Default `qcow2`. */
  readonly imageFormat: ImageFormat;
  /** `image_api_use_tasks`: images come by a task, through the object store. Default false. */
  readonly imageApiUseTasks: boolean;
  /** Properties that a vendor wants on its images (`disable_vendor_agent`). */
  readonly disableVendorAgent: Readonly<Record<string, string>>;
}
