import type { Logger } from '@nodepool-builder/image-builder';
import type { WebAddress } from '../commands/web-options.ts';
import type { SiteView } from './site-view.ts';

/** What the parts of the server share. */
export interface WebContext {
  readonly view: SiteView;
  readonly logger: Logger;
  /** Address that it listens on. */
  readonly address: WebAddress;
}
