/// <reference types="vite/client" />
declare module '@univerjs/preset-sheets-core/locales/en-US';
declare module '@univerjs/preset-sheets-core/locales/zh-CN';
