import type { Logger } from '@nodepool-builder/image-builder';
import type { NodepoolBuilder } from '../daemon/nodepool-builder.ts';
import type { Access } from './access.ts';
import type { EventMetrics } from './event-metrics.ts';
import type { SiteView } from './site-view.ts';
import type { WebAddress, WebOptions } from './web-options.ts';

/** State that the parts of the server share. */
export interface WebContext {
  readonly view: SiteView;
  readonly access: Access;
  readonly logger: Logger;
  /** Address on which the server listens. */
  readonly address: WebAddress;
  readonly options: WebOptions;
  /** Metrics of the events of this process. */
  readonly events: EventMetrics;
  /** The builder of this process; undefined if none runs here. */
  readonly builder?: NodepoolBuilder | undefined;
}
