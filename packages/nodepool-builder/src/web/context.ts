import type { Logger } from '@nodepool-builder/image-builder';
import type { WebAddress, WebOptions } from '../commands/web-options.ts';
import type { Access } from './access.ts';
import type { SiteView } from './site-view.ts';

/** What the parts of the server share. */
export interface WebContext {
  readonly view: SiteView;
  readonly access: Access;
  readonly logger: Logger;
  /** Address that it listens on. */
  readonly address: WebAddress;
  readonly options: WebOptions;
}
