"""How much each head matters."""
